package proc

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// ErrHeld means that another socket holds the lock, perhaps one of this process.
var ErrHeld = errors.New("held by another")

// Seeds of the two hashes in the socket's name, the same as the client's.
const (
	seedHigh = 0x4f4d502d4c4f434b
	seedLow  = 0x50492d46494c454c
)

// lockPrefix begins the abstract names.
const lockPrefix = "@omp-file-lock-"

// LockSocket returns the abstract name of the socket for the lock at path. Clients hash the path byte
// by byte, with links unresolved. As in Go and /proc, an @ stands for the leading NUL.
func LockSocket(path string) string {
	const digits = 2 * 16 // of two hashes of 64 bits
	name := make([]byte, 0, len(lockPrefix)+digits)
	name = append(name, lockPrefix...)
	for _, seed := range [...]uint64{seedHigh, seedLow} {
		var d xxhash.Digest // not by its constructor, which allocates
		d.ResetWithSeed(seed)
		_, _ = d.WriteString(path) // never fails
		var sum [8]byte
		binary.BigEndian.PutUint64(sum[:], d.Sum64())
		name = hex.AppendEncode(name, sum[:])
	}
	return string(name)
}

// Lock is a lock that this process holds.
type Lock struct{ fd int }

// TryLock takes the lock at path, which need not exist, or returns ErrHeld. Other errors mean
// that the system denies us such locks. Callers must call Release.
func TryLock(path string) (Lock, error) {
	fd, err := newSocket()
	if err != nil {
		return Lock{}, fmt.Errorf("a socket for a lock: %w", err)
	}
	err = unix.Bind(fd, &unix.SockaddrUnix{Name: LockSocket(path)})
	if err == nil {
		return Lock{fd}, nil
	}
	_ = unix.Close(fd)
	if err == unix.EADDRINUSE {
		return Lock{}, ErrHeld
	}
	return Lock{}, fmt.Errorf("binding the socket of a lock: %w", err)
}

// newSocket returns a socket that children do not inherit, as they would keep a lock alive.
func newSocket() (int, error) {
	return unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
}

// Release releases the lock.
func (l Lock) Release() { _ = unix.Close(l.fd) }

// IsLocked reports whether a process in our network namespace holds the lock at path. It connects to
// the socket and sends nothing. On errors it returns false, except if descriptors are short.
func IsLocked(path string) bool {
	fd, err := newSocket()
	if err != nil {
		return err == unix.EMFILE || err == unix.ENFILE
	}
	defer unix.Close(fd)
	err = unix.Connect(fd, &unix.SockaddrUnix{Name: LockSocket(path)}) // never blocks
	return err == nil || err == unix.EPERM                             // EPERM: the socket exists and takes nothing from us
}

// LockHolder returns the process that holds the lock at path, 0 if it cannot be determined. The kernel
// has no peer credentials for unconnected sockets, so LockHolder searches /proc for the process that
// has the socket's inode open. That may take milliseconds.
func LockHolder(path string) int {
	inode := Locks()[LockSocket(path)]
	if inode == 0 {
		return 0
	}
	fd, err := newSocket() // for the device of sockets
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	if err != nil {
		return 0
	}
	for _, p := range Processes("/proc") {
		socket := storage.Token{Device: st.Dev, Inode: inode} // all sockets are on one device
		has, _ := p.Writes(socket)
		if has {
			return p.PID
		}
	}
	return 0
}

// Locks returns the inodes of the sockets of all held locks in our network namespace, by their names (LockSocket). It
// returns nil if they cannot be listed.
func Locks() map[string]uint64 {
	table, err := os.ReadFile("/proc/self/net/unix")
	if err != nil {
		return nil
	}
	locks := map[string]uint64{}
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line) // Num RefCount Protocol Flags Type St Inode Path
		if len(fields) != 8 {          // a socket without a path
			continue
		}
		inode := fields[6]
		path := fields[7]
		if strings.HasPrefix(path, lockPrefix) {
			locks[path], _ = strconv.ParseUint(inode, 10, 64)
		}
	}
	return locks
}

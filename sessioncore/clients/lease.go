package clients

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sys/unix"
)

// Newer clients hold a lease on the session that they write to, from their first write until they exit: a datagram
// socket with an abstract name, which is a hash of the lease's path (docs/format.md, omp after 18.2.3). The kernel
// removes it with the process, so there are no stale leases. Sockets belong to a network namespace: a client in a
// container with its own network is not seen.

// Leases finds clients that hold the lease of a session. It is safe for concurrent use.
//
// A query costs one connect(2) for each directory of leases. It sends nothing; the kernel answers.
type Leases struct {
	dirs []string

	mu   sync.Mutex // guards the fields below
	fd   int        // an unconnected socket; valid if open
	open bool
}

// NewLeases returns a Leases for the given directories of leases. They need not exist: on Linux a lease is not a
// file.
func NewLeases(dirs ...string) *Leases { return &Leases{dirs: dirs} }

// LeaseDirs returns the directories of leases that clients of an agent directory may use, as absolute paths without
// duplicates: the one beside each of the directory's paths in sources, and those that a client derives from its
// environment, which is assumed to be like ours.
func LeaseDirs(getenv func(string) string, sources ...string) (dirs []string) {
	add := func(dir ...string) {
		path, err := filepath.Abs(filepath.Join(filepath.Join(dir...), "run", "session-owners"))
		if err == nil && !slices.Contains(dirs, path) {
			dirs = append(dirs, path)
		}
	}
	for _, source := range sources {
		if filepath.Base(source) == "agent" {
			add(filepath.Dir(source))
		}
	}
	if home := getenv("HOME"); home != "" {
		config := getenv("PI_CONFIG_DIR")
		if config == "" {
			config = ".omp"
		}
		add(home, config)
	}
	if state := getenv("XDG_STATE_HOME"); state != "" {
		add(state, "omp")
	}
	return dirs
}

// Close closes the socket.
func (l *Leases) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open {
		_ = unix.Close(l.fd)
		l.open = false
	}
}

// On returns the client that holds the lease name, or nil if there is none or name is empty. The PID is 0 if the
// process cannot be seen.
func (l *Leases) On(name string) *LiveError {
	if name == "" {
		return nil
	}
	for _, dir := range l.dirs {
		if name := LeaseSocket(filepath.Join(dir, name+".lock")); l.held(name) {
			live := &LiveError{Sign: SignLease, PID: socketOwner("/proc", name)}
			if live.PID != 0 {
				live.Command = CommandOf("/proc", live.PID)
			}
			return live
		}
	}
	return nil
}

// Seeds of the two hashes in the socket's name, the same as the client's.
const (
	leaseSeedHigh = 0x4f4d502d4c4f434b
	leaseSeedLow  = 0x50492d46494c454c
)

// LeaseSocket returns the abstract name of the socket that a client binds to hold the lease at path. As in Go and
// /proc, an @ stands for the leading NUL. It is exported so that the tests of package writer can hold a lease.
func LeaseSocket(path string) string {
	sum := func(seed uint64) uint64 {
		d := xxhash.NewWithSeed(seed)
		_, _ = d.WriteString(path) // never fails
		return d.Sum64()
	}
	return fmt.Sprintf("@omp-file-lock-%016x%016x", sum(leaseSeedHigh), sum(leaseSeedLow))
}

// held reports whether a datagram socket with this abstract name exists.
func (l *Leases) held(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.open {
		syscall.ForkLock.RLock() // not every system has SOCK_CLOEXEC
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
		if err == nil {
			unix.CloseOnExec(fd)
			_ = unix.SetNonblock(fd, true)
		}
		syscall.ForkLock.RUnlock()
		if err != nil {
			return false
		}
		l.fd, l.open = fd, true
	}
	err := unix.Connect(l.fd, &unix.SockaddrUnix{Name: name}) // never blocks
	if err == nil {                                           // the socket is connected now and would stay so after a failed connect
		_ = unix.Close(l.fd)
		l.open = false
	}
	return err == nil || err == unix.EPERM // EPERM: it exists and is connected to another socket
}

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

// Newer clients hold a lease on the session that they write to, from their first write until they end: a datagram
// socket with an abstract name, which is a hash of the lease's path (docs/format.md, omp after 18.2.3). The kernel
// drops it with the process, so there is nothing stale about one that is found. Sockets are per network namespace: a
// client in a container with a network of its own is not seen.

// Leases tells whether a client holds the lease of a session. It is safe for concurrent use.
//
// It costs one connect(2) for each directory of leases, which sends nothing and is answered by the kernel.
type Leases struct {
	dirs []string

	mu   sync.Mutex // guards what follows
	fd   int        // the socket that connects, when open
	open bool
}

// NewLeases returns who knows of the leases below some directories. They need not exist: on Linux no file is made.
func NewLeases(dirs ...string) *Leases { return &Leases{dirs: dirs} }

// LeaseDirs are the directories of leases that clients of an agent directory may use, given its paths and the
// environment: the one beside the agent directory, and those that the client takes by its environment, which may be
// like ours.
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

// Close lets go of the socket.
func (l *Leases) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open {
		_ = unix.Close(l.fd)
		l.open = false
	}
}

// On returns the client that holds the lease of a name, nil for none and for the empty name.
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

// The seeds of the two hashes in a socket's name; the client's.
const (
	leaseSeedHigh = 0x4f4d502d4c4f434b
	leaseSeedLow  = 0x50492d46494c454c
)

// LeaseSocket is the abstract name of the socket that stands for a path, with the @ that Go and /proc write for its
// leading NUL.
func LeaseSocket(path string) string {
	sum := func(seed uint64) uint64 {
		d := xxhash.NewWithSeed(seed)
		_, _ = d.WriteString(path) // never fails
		return d.Sum64()
	}
	return fmt.Sprintf("@omp-file-lock-%016x%016x", sum(leaseSeedHigh), sum(leaseSeedLow))
}

// held reports whether a datagram socket has an abstract name.
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
	if err == nil {                                           // now it is connected, and would stay so when the next connect fails
		_ = unix.Close(l.fd)
		l.open = false
	}
	return err == nil || err == unix.EPERM // EPERM: it is there, and connected to another one
}

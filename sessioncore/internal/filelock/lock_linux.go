package filelock

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// Lock is a lock that this process holds.
type Lock struct{ fd int }

// TryAcquire takes the lock at path if it is free; otherwise the error is ErrHeld. Other errors mean that the system
// does not let us have such a lock. Callers must call Release. The path need not exist, and nothing is made there.
func TryAcquire(path string) (Lock, error) {
	// Children do not inherit it: with one of them the lock would live on.
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return Lock{}, fmt.Errorf("a socket for a lock: %w", err)
	}
	err = unix.Bind(fd, &unix.SockaddrUnix{Name: Socket(path)})
	if err == nil {
		return Lock{fd}, nil
	}
	_ = unix.Close(fd)
	if err == unix.EADDRINUSE {
		return Lock{}, ErrHeld
	}
	return Lock{}, fmt.Errorf("binding the socket of a lock: %w", err)
}

// Release gives the lock back.
func (l Lock) Release() { _ = unix.Close(l.fd) }

// Probe tells whether locks are held. It costs one connect(2) and sends nothing; the kernel answers. It is safe for
// concurrent use, and its zero value is ready for it.
type Probe struct {
	mu   sync.Mutex // guards fd and open
	fd   int        // an unconnected socket; valid if open
	open bool

	search sync.Mutex // guards last; held while PID searches
	last   holder     // whom PID found last
}

// Close closes the socket.
func (p *Probe) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.close()
}

func (p *Probe) close() {
	if p.open {
		_ = unix.Close(p.fd)
		p.open = false
	}
}

// Held reports whether somebody in our network namespace holds the lock at path. If that cannot be told, it is not held.
func (p *Probe) Held(path string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.open {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			return false
		}
		p.fd, p.open = fd, true
	}
	err := unix.Connect(p.fd, &unix.SockaddrUnix{Name: Socket(path)}) // never blocks
	if err == nil {
		p.close() // it is connected now, and would stay so after a failed connect
	}
	return err == nil || err == unix.EPERM // EPERM: the socket exists and takes nothing from us
}

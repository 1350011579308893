//go:build !linux

package filelock

// Lock is a lock that this process holds. There are none.
type Lock struct{}

// TryAcquire fails with ErrUnsupported.
func TryAcquire(string) (Lock, error) { return Lock{}, ErrUnsupported }

// Release does nothing.
func (Lock) Release() {}

// Probe finds no lock.
type Probe struct{}

// Close does nothing.
func (*Probe) Close() {}

// Held returns false.
func (*Probe) Held(string) bool { return false }

// PID returns 0.
func (*Probe) PID(string) int { return 0 }

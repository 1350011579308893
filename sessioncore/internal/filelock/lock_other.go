//go:build !linux

package filelock

// Lock is a lock that this process holds. There are none.
type Lock struct{}

// TryAcquire fails with ErrUnsupported.
func TryAcquire(string) (Lock, error) { return Lock{}, ErrUnsupported }

// Release does nothing.
func (Lock) Release() {}

// Held returns false.
func Held(string) bool { return false }

// Holder returns 0.
func Holder(string) int { return 0 }

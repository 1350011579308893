//go:build !linux

package filelock

import "errors"

// ErrHeld is never returned.
var ErrHeld = errors.New("held by another")

// Socket returns no name.
func Socket(string) string { return "" }

// Lock is a lock that this process holds. There are none.
type Lock struct{}

// TryAcquire fails.
func TryAcquire(string) (Lock, error) { return Lock{}, errors.ErrUnsupported }

// Release does nothing.
func (Lock) Release() {}

// Held returns false.
func Held(string) bool { return false }

// Holder returns 0.
func Holder(string) int { return 0 }

// All returns none.
func All() map[string]uint64 { return nil }

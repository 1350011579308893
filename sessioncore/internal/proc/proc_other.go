//go:build !linux

package proc

import (
	"errors"

	"sessionfs/sessioncore/storage"
)

// Substitutes for Linux's calls: links in /proc do not lead to open files, and there are no locks.

// ErrHeld is never returned.
var ErrHeld = errors.New("held by another")

// Lock is a lock that this process holds.
type Lock struct{}

func isOneOf(string, []storage.Token) (bool, error) { return false, nil }

// LockSocket returns no name.
func LockSocket(string) string { return "" }

// TryLock fails.
func TryLock(string) (Lock, error) { return Lock{}, errors.ErrUnsupported }

// Release does nothing.
func (Lock) Release() {}

// IsLocked returns false.
func IsLocked(string) bool { return false }

// LockHolder returns 0.
func LockHolder(string) int { return 0 }

// Locks returns none.
func Locks() map[string]uint64 { return nil }

package storage

import (
	"errors"
	"fmt"
)

// The errors of storages, in addition to those of package io/fs and of the backing system.
var (
	// ErrStale means that the backing file changed or disappeared while a reader had it open.
	ErrStale = errors.New("the backing file changed or is gone")
	// ErrNotRegular means that a name expected to be a file is a directory, link, device or the like.
	ErrNotRegular = errors.New("not a regular file")
	// ErrBadName means that a name leads out of the root or cannot name a file.
	ErrBadName = errors.New("not a usable name")
	// ErrLocked means that another writer held a file's lock, or a lease on it, for longer than LockLimit, 500 ms,
	// which is also the client's limit (docs/format.md, The client's lock).
	ErrLocked = errors.New("locked by another writer")
	// ErrUnsupported means that a store cannot do something for any name, and did nothing. Errors of the backing system,
	// which are about one file, never match it.
	ErrUnsupported = fmt.Errorf("the storage cannot do that: %w", errors.ErrUnsupported)
)

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
	// ErrTooMany means that the maximum number of files are pending.
	ErrTooMany = errors.New("too many new sessions wait for their first answer")
	// ErrNoRoom means that a pending file cannot be created or grow in memory, and has to go to disk.
	ErrNoRoom = errors.New("no room in memory")
	// ErrLeaseKept means that the lease on an object with which Writers looked for writers could not be released.
	// Only closing the object releases it.
	ErrLeaseKept = errors.New("the lease on a file could not be given back")
	// ErrUnsupported means that the storage does not support an operation for any name, and did nothing. Errors of
	// the backing system, which are about one file, never match it.
	ErrUnsupported = fmt.Errorf("the storage cannot do that: %w", errors.ErrUnsupported)
)

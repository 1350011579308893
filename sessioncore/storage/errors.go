package storage

import (
	"errors"
	"fmt"
)

// The errors of storages, besides those of package io/fs and of the backing system.
var (
	// ErrStale means that the backing file changed or went away under an open reader.
	ErrStale = errors.New("the backing file changed or is gone")
	// ErrNotRegular means that the name is a directory, link, device or the like where a file was expected.
	ErrNotRegular = errors.New("not a regular file")
	// ErrBadName means a name that leaves its root or cannot name a file.
	ErrBadName = errors.New("not a usable name")
	// ErrLocked means that another writer has held a file's lock, or a lease on it, for longer than we wait:
	// 500 ms, as the client does (docs/format.md, The client's lock).
	ErrLocked = errors.New("locked by another writer")
	// ErrTooMany means that as many files are pending as may be.
	ErrTooMany = errors.New("too many new sessions wait for their first answer")
	// ErrNoRoom means that a pending file may not be made or grow in memory, and has to go to disk.
	ErrNoRoom = errors.New("no room in memory")
	// ErrLeaseKept means that the lease on an object by which its writers were looked for could not be given back: only
	// closing the object does that.
	ErrLeaseKept = errors.New("the lease on a file could not be given back")
	// ErrUnsupported means that the storage cannot do what was asked, whatever the name, and did nothing. It is no
	// errno of the backing system: those are of one file.
	ErrUnsupported = fmt.Errorf("the storage cannot do that: %w", errors.ErrUnsupported)
)

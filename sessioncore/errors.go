package sessioncore

import "errors"

// The domain errors. Everything that sessioncore returns wraps one of these or an error of the
// backing storage; package nodes turns them into errnos in one place (design.md section 7).
var (
	// ErrNotSession: the file has no valid header, so it is shown as a raw file only.
	ErrNotSession = errors.New("not a session file")
	// ErrNotFound: an entry id, label target or branch point is not in the session.
	ErrNotFound = errors.New("no such entry in the session")
	// ErrStale: the backing file changed or went away under an open reader.
	ErrStale = errors.New("the backing file changed or is gone")
	// ErrNotRegular: the name is a directory, link, device or the like where a file was expected.
	ErrNotRegular = errors.New("not a regular file")
	// ErrBadName: a name that leaves its root or cannot name a file.
	ErrBadName = errors.New("not a usable name")
	// ErrLocked: another writer has held a file's lock, or a lease on it, for longer than we wait
	// (format.md, the client's lock: 500 ms).
	ErrLocked = errors.New("locked by another writer")
)

package sessioncore

import "errors"

// The domain errors. Everything that sessioncore returns wraps one of these or an error of the
// backing storage; package nodes turns them into errnos in one place (docs/design.md section 7).
var (
	// ErrNotSession: the file has no valid header, so it is shown as a raw file only.
	ErrNotSession = errors.New("not a session file")
	// ErrNotFound: an entry id, label target or branch point is not in the session.
	ErrNotFound = errors.New("no such entry in the session")
	// ErrInvalid: what was to be written is no entry that the format knows. A writer.FieldError says which
	// field is at fault.
	ErrInvalid = errors.New("not a valid entry")
	// ErrExists: an id that was given is in the session already.
	ErrExists = errors.New("the id exists in the session")
	// ErrBusy: a live client holds the session open for writing (docs/design.md section 4).
	ErrBusy = errors.New("a live client holds the session")
	// ErrTooBig: a line is longer than writer.MaxLine.
	ErrTooBig = errors.New("the line is too long")
	// ErrReadOnly: nothing may be written.
	ErrReadOnly = errors.New("read-only")
)

package sessioncore

import "errors"

// The errors of this package. Every other error wraps one of these or one of the storage; package
// nodes maps them to errnos (docs/design.md section 7).
var (
	// ErrNotSession means that the file has no valid header, so it is shown as a raw file only.
	ErrNotSession = errors.New("not a session file")
	// ErrNotFound means that an entry id, label target or branch point is not in the session.
	ErrNotFound = errors.New("no such entry in the session")
	// ErrInvalid means that a line is not a valid entry. A writer.FieldError names the field.
	ErrInvalid = errors.New("not a valid entry")
	// ErrExists means that the id given for a new entry is already in the session.
	ErrExists = errors.New("the id exists in the session")
	// ErrBusy means that a live client has the session open (docs/design.md section 4).
	ErrBusy = errors.New("a live client holds the session")
	// ErrTooBig means that a line is longer than writer.MaxLine.
	ErrTooBig = errors.New("the line is too long")
	// ErrReadOnly means that writing is not allowed.
	ErrReadOnly = errors.New("read-only")
)

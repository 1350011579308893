package fs

import (
	"errors"
	"fmt"
)

// The kinds of a refusal.
var (
	ErrArgument   = errors.New("argument")                  // it names nothing, or several things
	ErrUsage      = errors.New("usage")                     // the command line is wrong
	ErrOption     = errors.New("-o")                        // the file of an option is missing or invalid
	ErrSource     = errors.New("SOURCE cannot be used")     // missing, no directory, unreadable
	ErrUnread     = errors.New("SOURCE is not understood")  // no agent wrote its records
	ErrMountpoint = errors.New("MOUNTPOINT")                // missing, no directory, not empty, mounted already, in SOURCE
	ErrFuse       = errors.New("FUSE")                      // FUSE refused the mount
	ErrMount      = errors.New("the mount failed")          // for another reason
	ErrUnmount    = errors.New("the mount cannot be ended") // not mounted, in use, another user's
)

// Refusal is an error that the user can correct.
type Refusal struct {
	Kind error
	Text string // the failure, its path, and the remedy
}

func (r *Refusal) Error() string { return r.Text }

// Unwrap returns the kind.
func (r *Refusal) Unwrap() error { return r.Kind }

// Refuse returns a refusal of a kind, which errors.Is finds, with a text that is formatted as by fmt.Sprintf.
func Refuse(kind error, format string, args ...any) error {
	return &Refusal{Kind: kind, Text: fmt.Sprintf(format, args...)}
}

package history

import "errors"

var (
	// ErrQuery: what was to be searched for is no FTS5 query, and has no word in it.
	ErrQuery = errors.New("not a search query")
	// ErrTooBig: a value is longer than maxValue, or all are longer than maxRendering.
	ErrTooBig = errors.New("the prompt history is too big")
	// ErrTooSlow: the answer took more than maxTime.
	ErrTooSlow = errors.New("reading the prompt history takes too long")
	// ErrUnreadable: the file is no database, or damaged, or not the client's.
	ErrUnreadable = errors.New("the prompt history cannot be read")
)

// errLost: a connection is in such a state that it cannot be closed.
var errLost = errors.New("a connection could not be closed")

// isLost reports whether a read keeps its place for ever, because its memory is not free.
func isLost(err error) bool { return errors.Is(err, errLost) }

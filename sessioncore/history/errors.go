package history

import "errors"

var (
	// ErrQuery: the query contains no word and is not a valid FTS5 query.
	ErrQuery = errors.New("not a search query")
	// ErrTooBig: a value is longer than maxValue, the answer longer than maxRendering, or the files than maxCopied.
	ErrTooBig = errors.New("the prompt history is too big")
	// ErrTooSlow: the answer took more than maxTime.
	ErrTooSlow = errors.New("reading the prompt history takes too long")
	// ErrBusy: other reads were in the way for maxWait.
	ErrBusy = errors.New("too many read the prompt history at once")
	// ErrUnreadable: the file is not a database, is damaged, or is not the client's.
	ErrUnreadable = errors.New("the prompt history cannot be read")
)

// errLost: a connection could not be closed, so that its memory is not freed.
var errLost = errors.New("a connection could not be closed")

// isLost reports whether a read must keep its slot for ever, because its memory is not freed.
func isLost(err error) bool { return errors.Is(err, errLost) }

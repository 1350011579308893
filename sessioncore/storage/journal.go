package storage

import (
	"context"
	"io"
	"log/slog"
	"time"
)

// Journal writes session files: it appends lines, and rarely replaces a file. Names, errors and
// concurrent use are as in Files; errors also wrap fs.ErrExist and ErrLocked.
type Journal interface {
	// Lock takes the lock of all writers of name (docs/format.md, The client's lock). It waits
	// until LockLimit has passed or ctx is done. Callers must call unlock.
	Lock(ctx context.Context, name string) (unlock func() error, err error)
	// Append appends data to an existing file with one write. After an error the file is unchanged.
	// Callers must hold Lock(name).
	Append(name string, data []byte) (Stat, error)
	// Replace replaces a file's content, or creates a file with its directories, completely or not
	// at all. It returns ErrStale and changes nothing if the file is not the expected one. An old
	// file's mode and owner are kept. Callers must hold Lock(name), except for a new file.
	Replace(name string, r Replacement) (Stat, error)
	// Sync makes appended data durable.
	Sync(name string) error
}

// Storage is a store that can be written.
type Storage interface {
	Files
	Journal
}

// Replacement is a new content, which Write writes, or a new beginning of the same file.
type Replacement struct {
	// Expect is the file's current token. The zero Token means no file.
	Expect Token
	// Write writes the content, which is durable when Replace returns.
	Write func(io.Writer) error
	// Modified is the modification time of a new file; zero for now.
	Modified time.Time
	// Ready is for long writes of a file that others append to. It is called when everything is
	// written and durable, before the rename. Callers need not hold Lock(name) until Ready returns;
	// it takes the lock. After an error of Ready nothing has changed. Appends to the old file
	// without the lock after that are carried over to the new one.
	Ready Ready

	// Head, if Write is nil, replaces the first len(Head) bytes, as clients write the title slot,
	// and Tail is appended. Where the file itself can be changed, open handles see it. The error
	// wraps ErrStale if the file is shorter.
	Head, Tail []byte
}

// Ready returns the file's current token under its lock: the expected one, or a later one of a file that
// has only grown; it writes the growth to more.
type Ready func(more io.Writer) (now Token, err error)

// EndsInNewline reports whether an append to a file of this size begins a new line: the file is
// empty or ends in a newline. Otherwise its last line is torn (docs/design.md section 4).
func EndsInNewline(o io.ReaderAt, size int64) (bool, error) {
	if size == 0 {
		return true, nil
	}
	var last [1]byte
	n, err := o.ReadAt(last[:], size-1)
	if n == 0 {
		return false, err
	}
	return last[0] == '\n', nil // io.EOF beside the byte is no error
}

// Replaced returns the error of a Replace, except if only syncing the directory failed: the file
// has its new content, and the writer would repeat an error's write. Then it logs a warning.
// Callers that need a durable file call Sync, which reports the error.
func Replaced(st Stat, err error) error {
	if err != nil && st != (Stat{}) {
		slog.Warn("a replaced session may not survive a crash", "err", err)
		return nil
	}
	return err
}

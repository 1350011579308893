package storage

import (
	"context"
	"io"
	"log/slog"
	"time"
)

// Journal is how session files are written: lines are added to their ends, and rarely a file is replaced. Names, errors
// and concurrent use are as in Files. Besides, errors wrap fs.ErrExist and ErrLocked.
type Journal interface {
	// Lock takes the lock that all writers of name use (docs/format.md, The client's lock). It waits until
	// LockLimit has passed or ctx is done. Callers must call unlock.
	Lock(ctx context.Context, name string) (unlock func() error, err error)
	// Append adds data to the end of an existing file with one write. After an error the file is unchanged. Callers
	// must hold Lock(name).
	Append(name string, data []byte) (Stat, error)
	// Replace gives a name another content, or makes a file with its directories, whole or not at all. It returns
	// ErrStale and changes nothing if the file is not the expected one. The mode and owner of a file that was there are
	// kept. Callers must hold Lock(name), but for a new file.
	Replace(name string, r Replacement) (Stat, error)
	// Sync makes appended data durable.
	Sync(name string) error
}

// Storage is a store that can be written.
type Storage interface {
	Files
	Journal
}

// Replacement says what Replace makes of a file: a new one that Write writes, or the same with another beginning.
type Replacement struct {
	// Expect is the token that the file has. The zero Token stands for no file.
	Expect Token
	// Write writes the content. It is durable when Replace returns.
	Write func(io.Writer) error
	// Modified is the time of the last change that a new file gets; zero for now.
	Modified time.Time
	// Ready is for a file that others append to, and that takes long to write. It is called when everything is written
	// and durable, and the file is about to get its name. Callers need not hold Lock(name) before Ready returns; it takes
	// the lock. An error of Ready is returned, and nothing has changed. What is appended to the old file without the lock
	// after that is carried over to the new one.
	Ready Ready

	// Head, if Write is nil, takes the place of the first len(Head) bytes, as clients write the title slot, and Tail is
	// added at the end. Where that can be done in the file itself, who has it open sees it. The error wraps ErrStale if the
	// file is shorter.
	Head, Tail []byte
}

// Ready returns the token that a file has now, under its lock. It is the one that was expected, or the file has only
// grown since, and Ready writes to more what was added.
type Ready func(more io.Writer) (now Token, err error)

// EndsInNewline reports whether data appended to a file of this size begins a new line: the file is empty or its
// last byte is a newline. Otherwise its last line is torn (docs/design.md section 4).
func EndsInNewline(o io.ReaderAt, size int64) (bool, error) {
	if size == 0 {
		return true, nil
	}
	var last [1]byte
	if n, err := o.ReadAt(last[:], size-1); n == 0 {
		return false, err
	}
	return last[0] == '\n', nil
}

// Replaced converts the results of a Replace to an error. If only syncing the directory failed, the file
// has its new content nevertheless, and an error would make the writer write it again; so Replaced logs a warning
// and returns nil. Callers that need the content durable call Sync, which reports the error.
func Replaced(st Stat, err error) error {
	if err != nil && st != (Stat{}) {
		slog.Warn("a replaced session may not survive a crash", "err", err)
		return nil
	}
	return err
}

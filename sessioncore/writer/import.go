package writer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/storage"
)

// This file puts copies of sessions from elsewhere into the store (docs/design.md section 2, Import).

// Copy is a file from elsewhere, whose first Size bytes do not change.
type Copy struct {
	io.ReaderAt
	Size     int64
	Modified time.Time
	// Artifact says that the file is no session: it never grows.
	Artifact bool
}

// Outcome is what becomes of a copy.
type Outcome string

// The values of Outcome.
const (
	Added     Outcome = "new"    // no file had the name
	Grown     Outcome = "longer" // the file of that name begins the copy, and got the rest of it
	Unchanged Outcome = "same"   // the file of that name has all of it
)

const (
	// importLimit is how long a copy waits for other writers of the same file, which may be another import of something
	// large.
	importLimit = 20 * time.Second
	// appendAtOnce is the most that is appended to a session. More is written to a copy of the file that replaces it: a
	// process that is killed in the middle of a large write(2) leaves a part of it.
	appendAtOnce = 256 << 10
)

// ErrOther means that a file is not what a copy of it begins with, nor the other way round.
var ErrOther = errors.New("what is there is another file, and is not replaced")

// Import gives a copy a name, or adds to the file that has the name what the copy has more. The session appears, or
// grows, whole or not at all. The error is ErrOther if neither begins the other.
func (w *Writer) Import(ctx context.Context, name string, c Copy) (Outcome, error) {
	for start := time.Now(); ; {
		outcome, err := w.importOnce(ctx, name, c)
		waits := errors.Is(err, storage.ErrStale) || errors.Is(err, storage.ErrLocked)
		if !waits || time.Since(start) > importLimit || !storage.Sleep(ctx, livePoll) {
			return outcome, err
		}
	}
}

func (w *Writer) importOnce(ctx context.Context, name string, c Copy) (Outcome, error) {
	outcome, err := w.Examine(ctx, name, c)
	if err != nil {
		return outcome, err
	}
	switch outcome {
	case Added:
		err = w.publishCopy(name, c)
	case Grown:
		err = w.change(ctx, w.store.Session(name), func(ch *change) (err error) {
			outcome, err = ch.grow(c)
			return err
		})
		if err == nil {
			err = w.opts.Journal.Sync(name)
		}
	}
	return outcome, err
}

// Examine tells what Import would do.
func (w *Writer) Examine(ctx context.Context, name string, c Copy) (Outcome, error) {
	if w.opts.ReadOnly {
		return Added, fmt.Errorf("%w: %s", sessioncore.ErrReadOnly, name)
	}
	st, err := w.store.Storage().Stat(name)
	switch {
	case storage.IsMissing(err):
		return Added, nil
	case err != nil:
		return Added, err
	case st.Kind != storage.KindFile:
		return Added, fmt.Errorf("%w: %s", storage.ErrNotRegular, name)
	}
	there, err := w.store.Storage().Open(name)
	if err != nil {
		return Added, err
	}
	defer there.Close()
	return compareCopy(there, c)
}

// compareCopy tells what a copy has that a file has not. The title slot does not count: clients overwrite it. The error is
// ErrOther if neither begins the other.
func compareCopy(there storage.Object, c Copy) (Outcome, error) {
	st, err := there.Stat()
	if err != nil {
		return Unchanged, err
	}
	both, from := min(st.Size, c.Size), int64(0)
	if !c.Artifact && slotIn(there, st.Size) != nil && slotIn(c, c.Size) != nil {
		from = slotSize
	}
	same, err := equalBytes(there, c, from, both)
	switch {
	case err != nil:
		return Unchanged, err
	case !same, c.Artifact && st.Size != c.Size:
		return Unchanged, ErrOther
	case c.Size > st.Size:
		return Grown, nil
	}
	return Unchanged, nil
}

// equalBytes reports whether two files have the same bytes in [from, to).
func equalBytes(a, b io.ReaderAt, from, to int64) (bool, error) {
	x, y := make([]byte, jsonl.ChunkSize), make([]byte, jsonl.ChunkSize)
	for ; from < to; from += int64(len(x)) {
		n := min(int64(len(x)), to-from)
		x, y = x[:n], y[:n]
		if err := storage.ReadFull(a, x, from); err != nil {
			return false, err
		}
		if err := storage.ReadFull(b, y, from); err != nil {
			return false, err
		}
		if !bytes.Equal(x, y) {
			return false, nil
		}
	}
	return true, nil
}

// publishCopy gives a copy a name that no file has.
func (w *Writer) publishCopy(name string, c Copy) error {
	return storage.Replaced(w.opts.Journal.Replace(name, storage.Replacement{Write: c.copyTo, Modified: c.Modified}))
}

// copyTo writes the copy.
func (c Copy) copyTo(out io.Writer) error {
	n, err := io.Copy(out, io.NewSectionReader(c, 0, c.Size))
	if err == nil && n < c.Size {
		err = fmt.Errorf("%w: the copy ends at %d", io.ErrUnexpectedEOF, n)
	}
	return err
}

// grow adds to the session what a copy has more. A title slot that differs becomes that of the copy, which has all entries.
func (ch *change) grow(c Copy) (Outcome, error) {
	outcome, err := compareCopy(ch.snap.File(), c)
	if err != nil || outcome == Unchanged {
		return outcome, err
	}
	size := ch.snap.Stat().Size
	more := c.Size - size
	if more > appendAtOnce || !bytes.Equal(slotIn(ch.snap.File(), size), slotIn(c, c.Size)) {
		return outcome, ch.replace(c.copyTo, false)
	}
	data := make([]byte, more)
	if err := storage.ReadFull(c, data, size); err != nil {
		return outcome, err
	}
	_, err = ch.w.opts.Journal.Append(ch.s.Name(), data)
	return outcome, err
}

package writer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/access"
	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/storage"
)

// This file takes in files that are copied into the store (docs/design.md section 2, Files copied in). A copy has no name
// until it is known to be whole, and never replaces a file that does not begin it.

// Receive begins to receive a file that is to lie in a directory. Until it has its name, it takes its room in the nearest
// directory above that is there.
func (w *Writer) Receive(ctx context.Context, dir string) (storage.Incoming, error) {
	if w.opts.ReadOnly {
		return nil, fmt.Errorf("%w: a copy", sessioncore.ErrReadOnly)
	}
	if err := w.mayMake(ctx, dir); err != nil {
		return nil, err
	}
	files := w.store.Storage()
	for {
		in, err := files.Receive(dir)
		if !storage.IsMissing(err) {
			return in, err
		}
		if dir == "" {
			if err := files.MkdirAll(""); err != nil {
				return nil, err
			}
			return files.Receive("")
		}
		dir = storage.Dir(dir)
	}
}

// MakeDir makes a directory with this mode.
func (w *Writer) MakeDir(ctx context.Context, dir string, mode uint32) error {
	if w.opts.ReadOnly {
		return fmt.Errorf("%w: a directory", sessioncore.ErrReadOnly)
	}
	above := storage.Dir(dir)
	if err := w.mayMake(ctx, above); err != nil {
		return err
	}
	files := w.store.Storage()
	if err := files.MkdirAll(above); err != nil && !errors.Is(err, storage.ErrUnsupported) {
		return err
	}
	return files.Mkdir(dir, mode)
}

// Remove removes a file, or an empty directory, that was copied in.
func (w *Writer) Remove(ctx context.Context, name string, expect storage.Token) error {
	if w.opts.ReadOnly {
		return fmt.Errorf("%w: a removal", sessioncore.ErrReadOnly)
	}
	if err := w.mayMake(ctx, storage.Dir(name)); err != nil {
		return err
	}
	return w.store.Storage().RemoveIf(name, expect)
}

// Copied is a whole copy.
type Copied struct {
	storage.Incoming
	// Attributes are those that an older version of the file gets. A new file has them already.
	Attributes storage.Attributes
	// DirMode is the mode of the directory, if it has to be made.
	DirMode uint32
	// Other says that the file need not be a session: it is one of the artifacts of one.
	Other bool
}

// CopyError says why a copy is not taken in.
type CopyError struct{ Why string }

// Error implements error.
func (e *CopyError) Error() string { return "this is no whole session: " + e.Why }

// Unwrap returns ErrInvalid.
func (e *CopyError) Unwrap() error { return sessioncore.ErrInvalid }

// Taken is what became of a copy.
type Taken uint8

// The values of Taken.
const (
	NotTaken  Taken = iota
	TakenNew        // it has its name
	TakenMore       // what it has more than the file of that name was added to that file
	TakenSame       // the file of that name had all of it
)

// TakeIn gives a copy its name. If there is a file of that name that the copy begins with, what follows is added to that
// file, as any other write would do it, and the copy has no name still. The error is a CopyError if
// the copy is no session or may be torn, and wraps fs.ErrExist if it does not begin with the file that is there.
func (w *Writer) TakeIn(ctx context.Context, name string, c Copied) (Taken, error) {
	st, err := c.Stat()
	if err != nil {
		return NotTaken, err
	}
	if err := w.checkWhole(ctx, name, c, st.Size); err != nil {
		return NotTaken, err
	}
	for range staleTries {
		taken, now, err := NotTaken, storage.Stat{}, error(nil)
		switch now, err = w.store.Storage().Stat(name); {
		case storage.IsMissing(err):
			taken, err = TakenNew, w.publish(ctx, name, c)
			if errors.Is(err, fs.ErrExist) {
				err = fmt.Errorf("%w: %w", storage.ErrStale, err)
			}
		case err != nil:
		case now.Kind != storage.KindFile:
			err = fmt.Errorf("%w: %s is no file", fs.ErrExist, name)
		default:
			taken, err = w.extend(ctx, name, c, st.Size)
		}
		if err == nil {
			return taken, nil
		}
		if !errors.Is(err, storage.ErrStale) { // else a file came or went at this moment
			return NotTaken, err
		}
	}
	return NotTaken, fmt.Errorf("%w: %s", storage.ErrStale, name)
}

// publish gives a copy a name that no file has.
func (w *Writer) publish(ctx context.Context, name string, c Copied) error {
	dir, files := storage.Dir(name), w.store.Storage()
	if err := w.mayMake(ctx, dir); err != nil {
		return err
	}
	if _, err := files.Stat(dir); storage.IsMissing(err) {
		if err := w.MakeDir(ctx, dir, c.DirMode); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	unlock, err := files.Lock(ctx, name)
	if err != nil {
		return err
	}
	defer func() { _ = unlock() }()
	if files.Pending(name) {
		return fmt.Errorf("%w: %s", fs.ErrExist, name)
	}
	return storage.Replaced(c.Publish(name))
}

// checkWhole fails unless a copy is a session and does not end in the middle of something. Damage elsewhere is that of
// the file that was copied.
func (w *Writer) checkWhole(ctx context.Context, name string, c Copied, size int64) error {
	if !strings.HasSuffix(name, sessioncore.FileEnding) {
		return nil
	}
	header, err := sessioncore.ReadHeaderOf(ctx, copyAlone{copied: copied{c.Incoming}}, name)
	switch {
	case errors.Is(err, sessioncore.ErrNotSession), err == nil && header == nil:
		if c.Other {
			return nil
		}
		return &CopyError{"it does not begin with the header of a session"}
	case err != nil:
		return err
	}
	whole, err := storage.EndsInNewline(c, size)
	if err != nil {
		return err
	}
	if !whole {
		return &CopyError{"its last line does not end in a newline, so the copy or the file itself is torn"}
	}
	last := jsonl.ObjectUnit
	_, err = jsonl.Load(ctx, c, jsonl.Position{}, size, func(u *jsonl.Unit) error {
		last = u.Kind
		return nil
	})
	if err == nil && last == jsonl.SkippedUnit {
		err = &CopyError{"its last line is no JSON value, so the copy or the file itself is torn"}
	}
	return err
}

// copyAlone is a storage in which every name is that of a copy. It can do nothing but Open.
type copyAlone struct {
	storage.Storage
	copied copied
}

// Open implements storage.Storage.
func (c copyAlone) Open(string) (storage.Object, error) { return c.copied, nil }

// copied is a copy that stays open.
type copied struct{ storage.Incoming }

// Close implements storage.Object.
func (copied) Close() error { return nil }

// extendAtOnce is the most that is added to a file by one append. More is written to a copy of the file that replaces
// it, while others need not wait for the lock.
const extendAtOnce = 4 << 20

// extend adds to a file what a copy has more than it.
func (w *Writer) extend(ctx context.Context, name string, c Copied, size int64) (Taken, error) {
	at, same, err := w.compare(name, c, size)
	switch {
	case err != nil:
		return NotTaken, err
	case !same:
		return NotTaken, differs(name)
	}
	s, taken := w.store.Session(name), TakenMore
	_, err = s.Probe(ctx)
	switch {
	case at.Size == size:
		taken, err = TakenSame, w.mayWrite(ctx, s)
	case errors.Is(err, sessioncore.ErrNotSession): // an artifact, or a session that is torn in its header
		err = w.extendOther(ctx, name, c, at, size)
	case err == nil:
		err = w.change(ctx, s, func(ch *change) error { return ch.extend(c, at, size) })
	}
	if err != nil {
		return NotTaken, err
	}
	return taken, w.giveAttributes(ctx, name, c.Attributes)
}

// giveAttributes gives a file the attributes that its copy has, as far as they differ. Who may write to a file of somebody
// else may not do that.
func (w *Writer) giveAttributes(ctx context.Context, name string, a storage.Attributes) error {
	st, err := w.store.Storage().Stat(name)
	if err != nil {
		return err
	}
	if c, _ := access.From(ctx); c != nil && c.UID != st.UID {
		return nil
	}
	if a = a.Without(st); a == (storage.Attributes{}) {
		return nil
	}
	if err := w.store.Storage().SetAttributes(name, a); !errors.Is(err, storage.ErrUnsupported) {
		return err
	}
	return nil
}

func differs(name string) error {
	return fmt.Errorf("%w: what is in %s is not what the copy begins with, and is not replaced", fs.ErrExist, name)
}

// compare reports whether a copy begins with the content of a file, in the state that it returns.
func (w *Writer) compare(name string, c Copied, size int64) (storage.Token, bool, error) {
	obj, err := w.store.Storage().Open(name)
	if err != nil {
		return storage.Token{}, false, err
	}
	defer obj.Close()
	st, err := obj.Stat()
	if err != nil || st.Size > size {
		return st.Token, false, err
	}
	same, err := sameBytes(obj, c, 0, st.Size)
	return st.Token, same, err
}

// sameBytes reports whether two files have the same bytes in [from, to).
func sameBytes(a, b io.ReaderAt, from, to int64) (bool, error) {
	x, y := make([]byte, jsonl.ChunkSize), make([]byte, jsonl.ChunkSize)
	for from < to {
		n := min(int64(len(x)), to-from)
		if err := storage.ReadFull(a, x[:n], from); err != nil {
			return false, err
		}
		if err := storage.ReadFull(b, y[:n], from); err != nil {
			return false, err
		}
		if string(x[:n]) != string(y[:n]) {
			return false, nil
		}
		from += n
	}
	return true, nil
}

// extend adds to the session what a copy has more than it; at is the state that was compared with the copy.
func (ch *change) extend(c Copied, at storage.Token, size int64) error {
	now := ch.snap.Stat().Token
	if now != at {
		if now.Size > size {
			return differs(ch.s.Name())
		}
		if same, err := sameBytes(ch.snap.File(), c, 0, now.Size); err != nil || !same {
			return errors.Join(err, differs(ch.s.Name()))
		}
	}
	if now.Size == size {
		return nil
	}
	files, name := ch.w.store.Storage(), ch.s.Name()
	if size-now.Size > extendAtOnce && !files.Pending(name) {
		return storage.Replaced(ch.replace(func(out io.Writer) error {
			_, err := io.Copy(out, io.NewSectionReader(c, 0, size))
			return err
		}, false))
	}
	more := make([]byte, size-now.Size)
	if err := storage.ReadFull(c, more, now.Size); err != nil {
		return err
	}
	if files.Pending(name) {
		return files.Keep(ch.ctx, name, more)
	}
	_, err := files.Append(name, more)
	return err
}

// extendOther is extend for a file that is no session. If it fails in the middle, the file still is the beginning of the
// copy.
func (w *Writer) extendOther(ctx context.Context, name string, c Copied, at storage.Token, size int64) error {
	if err := w.mayWrite(ctx, w.store.Session(name)); err != nil {
		return err
	}
	files := w.store.Storage()
	unlock, err := files.Lock(ctx, name)
	if err != nil {
		return err
	}
	defer func() { _ = unlock() }()
	if now, err := files.Stat(name); err != nil || now.Token != at {
		return errors.Join(err, fmt.Errorf("%w: %s", storage.ErrStale, name))
	}
	for off := at.Size; off < size; {
		more := make([]byte, min(size-off, extendAtOnce))
		if err := storage.ReadFull(c, more, off); err != nil {
			return err
		}
		if _, err := files.Append(name, more); err != nil {
			return err
		}
		off += int64(len(more))
	}
	return nil
}

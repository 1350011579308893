package writer

import (
	"fmt"
	"io"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// This file rewrites sessions for a migration, a title or a cwd in the header. All other bytes are
// copied, unreadable text included (docs/design.md section 4).

// fileEdit replaces a range of the file by a text.
type fileEdit struct {
	off, size int64
	text      func() ([]byte, error)
}

// rewrite replaces the file by a copy with edits, in file order, and with lines appended.
func (c *change) rewrite(edits []fileEdit, lines []byte) error {
	lines, err := c.afterTorn(lines)
	if err != nil {
		return err
	}
	write := func(out io.Writer) error {
		return copyEdited(c.snap, out, edits, lines)
	}
	return c.replace(write, len(lines) == 0)
}

// replace replaces the file by the output of write, unless a client opened the session meanwhile.
// Unless keepLock is set, the lock is free while write runs, as a large session takes longer than
// others wait. With tail, lines appended meanwhile are copied; without, the error is ErrStale.
func (c *change) replace(write func(io.Writer) error, tail bool) error {
	if !c.keepLock {
		c.unlock()
		c.unlock = func() {}
	}
	ready := func(more io.Writer) (storage.Token, error) {
		return c.relock(more, tail)
	}
	replacement := storage.Replacement{
		Expect: c.snap.Stat().Token,
		Write:  write,
		Ready:  ready,
	}
	return storage.Replaced(c.w.opts.Journal.Replace(c.s.Name(), replacement))
}

// relock takes the lock and checks for live clients once more. If the session has only grown since
// c.snap, it copies the growth to more. It returns the file's token.
func (c *change) relock(more io.Writer, tail bool) (storage.Token, error) {
	before := c.snap.Stat()
	now, err := c.reacquire()
	if err != nil {
		return storage.Token{}, err
	}
	defer now.Release()
	st := now.Stat()
	if st.Token == before.Token {
		return st.Token, nil
	}
	isCurrent := c.snap.Version() >= sessioncore.CurrentVersion
	mayCopy := tail && isCurrent && now.GrewFrom(c.snap)
	if !mayCopy {
		return storage.Token{}, fmt.Errorf("%w: %s", storage.ErrStale, c.s.Name())
	}
	err = copyRange(now, more, before.Size, st.Size)
	if err != nil {
		return storage.Token{}, err
	}
	return st.Token, nil
}

// reacquire acquires a snapshot of the session under the lock, which it takes if it is free.
func (c *change) reacquire() (*sessioncore.Snapshot, error) {
	if c.keepLock {
		return c.w.acquire(c.ctx, c.s)
	}
	now, unlock, err := c.w.lock(c.ctx, c.s)
	if err == nil {
		c.unlock = unlock
	}
	return now, err
}

// copyEdited writes the session with the edits, which are in the order of their offsets, and a tail.
func copyEdited(s *sessioncore.Snapshot, out io.Writer, edits []fileEdit, tail []byte) error {
	at := int64(0)
	for _, e := range edits {
		text, err := e.text()
		if err != nil {
			return err
		}
		err = copyRange(s, out, at, e.off)
		if err != nil {
			return err
		}
		_, err = out.Write(text)
		if err != nil {
			return err
		}
		at = e.off + e.size
	}
	err := copyRange(s, out, at, s.Stat().Size)
	if err != nil {
		return err
	}
	_, err = out.Write(tail)
	return err
}

// copyRange writes a range of the session's file. The error wraps ErrStale if the file has become
// shorter.
func copyRange(s *sessioncore.Snapshot, out io.Writer, from, to int64) error {
	n, err := io.Copy(out, io.NewSectionReader(s.File(), from, to-from))
	if err == nil && n < to-from {
		err = fmt.Errorf("%w: it ends at %d", storage.ErrStale, from+n)
	}
	return err
}

// migration returns the edits that migrate a file of an old version to version 3, with the ids that
// the mount shows, or nil for a current file.
func (c *change) migration() []fileEdit {
	if c.snap.Version() >= sessioncore.CurrentVersion {
		return nil
	}
	edits := []fileEdit{c.headerEdit()}
	for e := range sessioncore.Entry(c.snap.Len()) {
		r, isMigrated := c.snap.MigratedRange(e)
		if !isMigrated {
			continue
		}
		edits = append(edits, fileEdit{
			off:  r.Offset,
			size: r.Size,
			text: func() ([]byte, error) { return c.snap.ShownText(e) },
		})
	}
	return edits
}

// withMigration adds the edits of a migration to the edits of a header.
func (c *change) withMigration(edits []fileEdit) []fileEdit {
	migration := c.migration()
	if migration != nil {
		edits = append(edits, migration[1:]...) // its first one is the header's
	}
	return edits
}

// headerEdit returns an edit that makes an older header one of version 3 and sets members. Existing
// members keep their places.
func (c *change) headerEdit(members ...rawjson.Field) fileEdit {
	text := func() ([]byte, error) {
		header, _, err := c.snap.ReadHeader()
		if err != nil {
			return nil, err
		}
		var set []rawjson.Field
		if c.snap.Version() < sessioncore.CurrentVersion {
			set = append(set, rawjson.Field{Key: "version", JSON: "3"})
		}
		return rawjson.SetMembers(header, append(set, members...)), nil
	}
	r := c.snap.HeaderRange()
	return fileEdit{
		off:  r.Offset,
		size: r.Size,
		text: text,
	}
}

// titleFields returns the header's members for a title and its source, "" if unknown.
func titleFields(title, source string) []rawjson.Field {
	titled := rawjson.Field{Key: "title"}
	sourced := rawjson.Field{Key: "titleSource"}
	if title != "" {
		titled.JSON = string(rawjson.AppendQuoted(nil, title))
		if source != "" {
			sourced.JSON = string(rawjson.AppendQuoted(nil, source))
		}
	}
	return []rawjson.Field{titled, sourced}
}

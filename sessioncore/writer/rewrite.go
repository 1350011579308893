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
	text      func() ([]byte, error) // called when it is written, as a long entry is only then read
}

// rewrite replaces the file by a copy with edits, in file order, and with lines appended. With lines,
// the error wraps storage.ErrStale if the session grew meanwhile: they may depend on its end.
func (c *change) rewrite(edits []fileEdit, lines []byte) error {
	lines, err := c.afterTorn(lines)
	if err != nil {
		return err
	}
	write := func(out io.Writer) error {
		return copyEdited(c.snap, out, edits, lines)
	}
	growth := copyGrowth
	if len(lines) > 0 {
		growth = refuseGrowth
	}
	return c.replace(write, growth)
}

// growthRule decides about lines that others append while a file is rewritten.
type growthRule bool

const (
	copyGrowth   growthRule = true  // copy them to the new file
	refuseGrowth growthRule = false // fail with storage.ErrStale
)

// replace replaces the file by the output of write, unless a client opened the session meanwhile.
// Unless keepLock is set, the lock is free while write runs, as a large session takes longer than
// others wait. The lock is held again when replace returns, unless it failed before that.
func (c *change) replace(write func(io.Writer) error, growth growthRule) error {
	if !c.keepLock {
		c.unlock()
		c.unlock = func() {} // until relock has it again
	}
	ready := func(more io.Writer) (storage.Token, error) {
		return c.relock(more, growth)
	}
	replacement := storage.Replacement{
		Expect: c.snap.Stat().Token,
		Write:  write,
		Ready:  ready,
	}
	return storage.Replaced(c.w.opts.Journal.Replace(c.s.Name(), replacement))
}

// relock takes the lock and checks for live clients once more. If the session has only grown since
// c.snap, and growth permits that, it copies the growth to more. It returns the file's token, which the
// file must still have when it is replaced.
func (c *change) relock(more io.Writer, growth growthRule) (storage.Token, error) {
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
	isCurrent := c.snap.Version() >= sessioncore.CurrentVersion // new lines of an older file need a migration
	mayCopy := growth == copyGrowth && isCurrent && now.GrewFrom(c.snap)
	if !mayCopy {
		return storage.Token{}, fmt.Errorf("%w: %s", storage.ErrStale, c.s.Name())
	}
	err = copyRange(now, more, before.Size, st.Size)
	if err != nil {
		return storage.Token{}, err
	}
	return st.Token, nil
}

// reacquire acquires a snapshot of the session under the lock, which it takes unless the rewrite has kept it. The
// error is a LiveError if a client has opened the session.
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

// withMigration returns edits of a header and a slot, and the edits of a migration behind them. The
// header's edits must be made by headerEdit, which migrates it.
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

// titleFields returns the header's members for a title and its source, "" if unknown. A member without
// JSON is to be removed: both of them for an empty title.
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

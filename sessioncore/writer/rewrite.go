package writer

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// This file rewrites sessions, for a migration or a title in the header. Everything else is copied byte for byte,
// including unreadable text (docs/design.md section 4).

// fileEdit replaces a range of the file by a text.
type fileEdit struct {
	off, size int64
	text      func() ([]byte, error)
}

// rewrite replaces the file by a copy with edits, which must be in file order, and with lines appended.
func (c *change) rewrite(edits []fileEdit, lines []byte) error {
	lines, err := c.afterTorn(lines)
	if err != nil {
		return err
	}
	return storage.Replaced(c.replace(func(out io.Writer) error { return copyEdited(c.snap, out, edits, lines) }))
}

// replace replaces the file by what write writes, unless a client opened the session meanwhile: rewriting a long
// session takes long enough for that.
func (c *change) replace(write func(io.Writer) error) (storage.Stat, error) {
	if err := c.w.mayMake(c.ctx, storage.Dir(c.s.Name())); err != nil {
		return storage.Stat{}, err
	}
	files, token := c.w.store.Storage(), c.snap.Stat().Token
	st, err := files.ReplaceIf(c.s.Name(), token, write, c.stillFree)
	if errors.Is(err, storage.ErrUnsupported) {
		st, err = files.Replace(c.s.Name(), token, write)
	}
	return st, err
}

// stillFree fails if a live client has the session open. It gives a program that opens the file, appends and closes
// it a moment to finish.
func (c *change) stillFree() error {
	for start := time.Now(); ; {
		err := c.w.checkLive(c.s, c.snap)
		if err == nil || !isTransient(err) {
			return err
		}
		if time.Since(start) > stillLimit || !storage.Sleep(c.ctx, stillPoll) {
			return c.w.namePID(c.s, err)
		}
	}
}

const (
	// stillLimit is how long to wait at the end of a rewrite for a program that has the file open. The lock, for
	// which others wait, is held meanwhile. stillPoll is how often the file is checked.
	stillLimit = 50 * time.Millisecond
	stillPoll  = time.Millisecond
)

func copyEdited(s *sessioncore.Snapshot, out io.Writer, edits []fileEdit, tail []byte) error {
	at := int64(0)
	for _, e := range edits {
		text, err := e.text()
		if err != nil {
			return err
		}
		if err := copyRange(s, out, at, e.off); err != nil {
			return err
		}
		if _, err := out.Write(text); err != nil {
			return err
		}
		at = e.off + e.size
	}
	if err := copyRange(s, out, at, s.Stat().Size); err != nil {
		return err
	}
	_, err := out.Write(tail)
	return err
}

// copyRange copies a range of the file.
func copyRange(s *sessioncore.Snapshot, out io.Writer, from, to int64) error {
	n, err := io.Copy(out, io.NewSectionReader(s.File(), from, to-from))
	if err == nil && n < to-from {
		err = fmt.Errorf("%w: it ends at %d", storage.ErrStale, from+n)
	}
	return err
}

// migration returns the edits that migrate a file of an old version to version 3, with the ids that its entries are
// shown with. It returns nil if the file needs none.
func (c *change) migration() []fileEdit {
	if c.snap.Version() >= sessioncore.CurrentVersion {
		return nil
	}
	edits := []fileEdit{c.headerEdit(nil)}
	for e := range sessioncore.Entry(c.snap.Len()) {
		if r, ok := c.snap.MigratedRange(e); ok {
			edits = append(edits, fileEdit{r.Offset, r.Size, func() ([]byte, error) { return c.snap.ShownText(e) }})
		}
	}
	return edits
}

// headerEdit returns an edit that makes an older header one of version 3 and sets the title if title is not nil.
// Existing members keep their places.
func (c *change) headerEdit(title *string) fileEdit {
	r := c.snap.HeaderRange()
	return fileEdit{r.Offset, r.Size, func() ([]byte, error) {
		header, _, err := c.snap.ReadHeader()
		if err != nil {
			return nil, err
		}
		var set []objectMember
		if c.snap.Version() < sessioncore.CurrentVersion {
			set = append(set, objectMember{"version", "3"})
		}
		if title != nil {
			set = append(set, titleFields(*title)...)
		}
		return setMembers(header, set), nil
	}}
}

// objectMember is a member of an object with its value as JSON, "" to remove it.
type objectMember struct{ key, json string }

// titleFields returns the header's members for a title that the user chose.
func titleFields(title string) []objectMember { return titleFieldsBy(title, titleByUser) }

// titleFieldsBy returns the header's members for a title and its source, "" if unknown.
func titleFieldsBy(title, source string) []objectMember {
	fields := []objectMember{{"title", ""}, {"titleSource", ""}}
	if title != "" {
		fields[0].json = string(rawjson.AppendQuoted(nil, title))
		if source != "" {
			fields[1].json = string(rawjson.AppendQuoted(nil, source))
		}
	}
	return fields
}

// setMembers sets or removes members of an object: it replaces the value of the last one with that key, or appends
// the member.
func setMembers(object rawjson.Value, fields []objectMember) []byte {
	var edits rawjson.Edits
	var add, gone []string
	for _, f := range fields {
		at := -1
		var old rawjson.Member
		object.EachMember(func(m rawjson.Member) bool {
			if m.KeyIs(f.key) {
				at, old = m.End-len(m.Value), m
			}
			return true
		})
		switch {
		case f.json == "":
			gone = append(gone, f.key)
		case at >= 0:
			edits = append(edits, rawjson.Edit{Start: at, End: old.End, Text: f.json})
		default:
			add = append(add, string(rawjson.AppendQuoted(nil, f.key))+":"+f.json)
		}
	}
	object = edits.Apply(object)
	edits = rawjson.Edits(nil).Object(object, 0, joinMembers(add), func(m rawjson.Member) bool {
		return slices.ContainsFunc(gone, m.KeyIs)
	})
	return edits.Apply(object)
}

func joinMembers(members []string) string {
	var out []byte
	for _, m := range members {
		out = rawjson.AppendListed(out, m)
	}
	return string(out)
}

package writer

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage"
)

const (
	slotSize = names.SlotSize
	// maxTitle is the maximum length of a title in bytes (docs/design.md section 2, title).
	maxTitle = 4 << 10
)

// SetTitle sets the session's title as the user's choice, or clears it (docs/design.md section 2,
// title). It overwrites a title slot and appends an entry about the change, as newer clients do;
// without a slot it rewrites the header, or in the dialects of pi and operator appends a
// session_info entry. The title is WTF-8 and is cleaned as the client does: no control characters,
// no runs of blanks. An unchanged title, or the text of the file title, writes nothing.
func (w *Writer) SetTitle(ctx context.Context, s *sessioncore.Session, title string) error {
	cleaned, err := ParseTitle(title)
	if err != nil {
		return err
	}
	_, err = s.Format(ctx)
	if err != nil { // a large session is read before others wait for its lock
		return err
	}
	return w.syncAfter(s, w.change(ctx, s, func(c *change) error {
		return c.setTitle(cleaned, title)
	}))
}

// ParseTitle returns the title in a line, cleaned as the client does, or ErrInvalid if it is too long.
func ParseTitle(line string) (string, error) {
	if len(line) > maxTitle {
		want := fmt.Sprintf("at most %d bytes", maxTitle)
		return "", &FieldError{Field: "title", Want: want, Got: fmt.Sprintf("%d", len(line))}
	}
	return cleanTitle(line), nil
}

// setTitle is SetTitle under the lock, for a cleaned title, "" for none, and its original line. It
// writes nothing if the user has chosen that title before.
func (c *change) setTitle(title, line string) error {
	old, err := c.snap.Title()
	if err != nil {
		return err
	}
	if line != "" && line == string(names.TitleLine(old)) {
		title = old // the line is the file's own text
	}
	if c.snap.Dialect().TitleEntry {
		if old == title {
			return nil
		}
		return c.commitLine(func(b *batch) []byte {
			return b.nameLine(b.newID(), b.leaf, title)
		})
	}
	header, slot, err := c.snap.ReadHeader()
	if err != nil {
		return err
	}
	text, source := titleOf(header, slot)
	isOfUser := title == "" || source == titleByUser
	if isOfUser && text == title {
		return nil
	}
	if slot != nil {
		return c.setSlot(title, old)
	}
	titled := c.headerEdit(titleFields(title, titleByUser)...)
	return c.rewrite(c.withMigration([]fileEdit{titled}), nil)
}

// nameLine returns the entry session_info with a title: pi and operator keep it there.
func (b *batch) nameLine(id string, parent *string, title string) []byte {
	line := b.entryPrefix(sessioncore.TypeSessionInfo, id, parent)
	line = append(line, `,"name":`...)
	line = rawjson.AppendQuoted(line, title)
	return append(line, "}\n"...)
}

// cleanTitle returns a title as the client cleans it: control characters become blanks, a run of blanks
// becomes one, and there is no space at the ends. Bytes that are neither UTF-8 nor a surrogate become
// U+FFFD.
func cleanTitle(title string) string {
	b := []byte(title)
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		r, n := rawjson.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			n = rawjson.IllFormedLen(b)
		}
		isC0 := r < 0x20
		isC1 := r >= 0x7F && r <= 0x9F
		if isC0 || isC1 {
			r = ' '
		}
		isRepeated := r == ' ' && bytes.HasSuffix(out, []byte{' '})
		if !isRepeated {
			out = rawjson.AppendCodePoint(out, r)
		}
		b = b[n:]
	}
	const byteOrderMark = 0xFEFF // a space to JavaScript's trim
	return strings.TrimFunc(string(out), func(r rune) bool {
		return unicode.IsSpace(r) || r == byteOrderMark
	})
}

// setSlot writes the title slot and an entry about the change from old, as newer clients do. A slot of
// the usual size is overwritten in place; otherwise, or to migrate the file, the file is rewritten.
func (c *change) setSlot(title, old string) error {
	b, err := c.w.batch(c.snap)
	if err != nil {
		return err
	}
	line := b.titleChange(title, old)
	slot := titleSlot(title, titleByUser, b.now.UTC().Format(rawjson.TimestampLayout))
	hasSlot := slotIn(c.snap.File(), c.snap.Stat().Size) != nil
	if hasSlot && c.snap.Version() >= sessioncore.CurrentVersion {
		return c.overwriteSlot(slot, line)
	}
	at, _ := c.snap.SlotRange()
	slotEdit := fileEdit{
		off:  at.Offset,
		size: at.Size,
		text: func() ([]byte, error) { return slot[:slotSize-1], nil }, // the file has the newline
	}
	titled := c.headerEdit(titleFields(title, titleByUser)...)
	edits := []fileEdit{slotEdit, titled}
	return c.rewrite(c.withMigration(edits), line)
}

// titleChange returns an entry about the change of the title from old.
func (b *batch) titleChange(title, old string) []byte {
	line := b.entryPrefix(sessioncore.TypeTitleChange, b.newID(), b.leaf)
	line = append(line, `,"title":`...)
	line = rawjson.AppendQuoted(line, title)
	line = append(line, `,"source":"user"`...)
	if old != "" {
		line = append(line, `,"previousTitle":`...)
		line = rawjson.AppendQuoted(line, old)
	}
	return append(line, "}\n"...)
}

// overwriteSlot overwrites the title slot in place, and appends a line.
func (c *change) overwriteSlot(slot, line []byte) error {
	line, err := c.afterTorn(line)
	if err != nil {
		return err
	}
	r := storage.Replacement{
		Expect: c.snap.Stat().Token,
		Head:   slot,
		Tail:   line,
	}
	_, err = c.w.opts.Journal.Replace(c.s.Name(), r)
	return err
}

// slotIn returns the title slot of a file of size bytes, with its newline, or nil if it has none
// that can be overwritten.
func slotIn(file io.ReaderAt, size int64) []byte {
	if size < slotSize {
		return nil
	}
	line := make([]byte, slotSize)
	err := storage.ReadFull(file, line, 0)
	if err != nil || bytes.IndexByte(line, '\n') != slotSize-1 {
		return nil
	}
	v := rawjson.Value(bytes.TrimSpace(line))
	if !rawjson.IsValidObject(v) || !sessioncore.IsTitleSlot(v) {
		return nil
	}
	return line
}

// The sources of titles.
const (
	titleByUser = "user"
	titleByAuto = "auto"
)

// titleOf returns the title in omp's header and slot, and its source, "" if unknown. A slot, nil if there
// is none, overrides the header.
func titleOf(header, slot rawjson.Value) (title, source string) {
	titleValue := header.Member("title")
	sourceValue := header.Member("titleSource")
	if slot != nil {
		titleValue = slot.Member("title")
		sourceValue = slot.Member("source")
	}
	title, _ = titleValue.Text()
	for _, known := range []string{titleByUser, titleByAuto} {
		if sourceValue.Is(known) {
			source = known
		}
	}
	return title, source
}

// titleSlot returns the line of a title slot. An empty title has no source.
func titleSlot(title, source, now string) []byte {
	if title == "" {
		source = ""
	}
	return names.TitleSlot(title, source, now)
}

package sessioncore

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// addHeader takes the file's first values: a title slot, if it is the very first line, and the header.
func (x *index) addHeader(u *jsonl.Unit) error {
	v := rawjson.Value(u.Text)
	if u.Line == 1 && x.header.slot == 0 && IsTitleSlot(v) {
		x.header.slotOff, x.header.slot = u.Off, u.Size
		return nil
	}
	d := DialectOf(v)
	if d == nil || x.header.slot > 0 && !d.Versioned {
		return ErrNotSession
	}
	x.dialect = d
	x.header.found = true
	x.header.off, x.header.size = u.Off, u.Size
	x.header.end = u.Off + u.Size
	x.version = CurrentVersion
	if d.Versioned {
		x.version = versionOf(v.Member("version"))
	}
	if id := v.Member("id"); len(id) <= maxLeaseText {
		if name, _ := id.Text(); isLeaseName(name) {
			x.header.leaseName = name
		}
	}
	x.values = 1
	if x.version < 2 {
		x.seed, _ = v.Member("id").Text()
	}
	x.form = d.Form
	if t, form, ok := d.Time(v.Member("timestamp")); ok {
		x.lastNow, x.form = t, form
	}
	x.header.time = x.lastNow
	return nil
}

// versionOf reads a header's version: absent or null is 1 (docs/format.md, Loading). Anything else counts as
// the number that the client's comparison makes of it.
func versionOf(v rawjson.Value) int {
	n := math.NaN()
	switch text, isText := v.Text(); {
	case v.Missing():
		n = 1
	case v.IsNumber():
		n, _ = strconv.ParseFloat(string(v), 64)
	case v[0] == 't':
		n = 1
	case v[0] == 'f', string(v) == "[]", isText && strings.TrimSpace(text) == "":
		n = 0
	case isText:
		if f, err := strconv.ParseFloat(strings.TrimSpace(text), 64); err == nil {
			n = f
		}
	}
	if math.IsNaN(n) {
		return CurrentVersion // no comparison with it holds, so nothing migrates
	}
	return int(math.Floor(math.Max(-1, math.Min(n, 1<<20))))
}

// CurrentVersion is the version that migrations lead to (docs/format.md, Old versions).
const CurrentVersion = 3

// IsTitleSlot: see docs/format.md, Title slot.
func IsTitleSlot(v rawjson.Value) bool {
	if !v.Member("type").Is(TitleType) {
		return false
	}
	version := v.Member("v")
	if n, err := strconv.ParseFloat(string(version), 64); !version.IsNumber() || err != nil || n != 1 {
		return false
	}
	for _, key := range []string{"title", "updatedAt", "pad"} {
		if !v.Member(key).IsString() {
			return false
		}
	}
	source := v.Member("source")
	return len(source) == 0 || source.Is("auto") || source.Is("user")
}

// HeaderRange returns where in the backing file the header's text lies.
func (s *Snapshot) HeaderRange() FileRange { return FileRange{s.header.off, s.header.size} }

// SlotRange returns where the title slot's text lies; ok is false where the file has none.
func (s *Snapshot) SlotRange() (r FileRange, ok bool) {
	return FileRange{s.header.slotOff, s.header.slot}, s.header.slot > 0
}

// ReadHeader reads the header and, where there is one, the title slot.
func (s *Snapshot) ReadHeader() (header, slot rawjson.Value, err error) {
	if header, err = s.read(s.header.off, s.header.size); err != nil {
		return nil, nil, err
	}
	if s.header.slot > 0 {
		if slot, err = s.read(s.header.slotOff, s.header.slot); err != nil {
			return nil, nil, err
		}
	}
	if !rawjson.IsValidObject(header) || s.header.slot > 0 && (!rawjson.IsValidObject(slot) || !IsTitleSlot(slot)) {
		return nil, nil, s.overwritten("the header")
	}
	return header, slot, nil
}

// SessionID returns the id in the header, WTF-8.
func (s *Snapshot) SessionID() (string, error) {
	header, _, err := s.ReadHeader()
	id, _ := header.Member("id").Text()
	return id, err
}

// Title returns the session's title, WTF-8, "" for none. A title slot overrides the header (docs/format.md,
// Title slot); operator's title is the name in the last session_info entry, and null, an empty name and
// none at all mean that there is no title.
func (s *Snapshot) Title() (string, error) {
	if s.dialect.TitleEntry {
		return s.name()
	}
	header, slot, err := s.ReadHeader()
	if err != nil {
		return "", err
	}
	if slot != nil {
		title, _ := slot.Member("title").Text()
		return title, nil
	}
	title, _ := header.Member("title").Text()
	return title, nil
}

// name is the name in the last session_info entry.
func (s *Snapshot) name() (string, error) {
	if s.titleEntry == 0 {
		return "", nil
	}
	text, err := s.EntryText(Entry(s.titleEntry - 1))
	name, _ := text.Member("name").Text()
	return name, err
}

// TitleDocument returns the file title: the title and a newline, nothing where there is none. Control characters
// and lone surrogates are escaped as in the file labels.
func (s *Snapshot) TitleDocument() (*Document, error) {
	title, err := s.Title()
	if err != nil {
		return nil, err
	}
	line := TitleLine(title)
	if len(line) > 0 {
		line = append(line, '\n')
	}
	return textDocument(s, line), nil
}

// TitleLine is a title as it is shown. A backslash stays one: titles that are written have no control
// characters, and people write paths.
func TitleLine(title string) (line []byte) {
	for b := []byte(title); len(b) > 0; {
		r, n := rawjson.DecodeRune(b)
		line = appendVisibly(line, r, b[:n])
		b = b[n:]
	}
	return line
}

// HeaderDocument returns header.json: the header as loaded, that is with the title slot merged and of
// version 3 where it was older, and a newline (docs/design.md, context.json).
func (s *Snapshot) HeaderDocument() (*Document, error) {
	header, slot, err := s.ReadHeader()
	if err != nil {
		return nil, err
	}
	var add []byte
	var gone []string
	if s.version < CurrentVersion {
		gone = append(gone, "version")
		add = append(add, `"version":3`...)
	}
	if slot != nil {
		gone = append(gone, "title", "titleSource")
		if title := slot.Member("title"); title.Truthy() {
			add = rawjson.AppendListed(add, `"title":`+string(title))
		}
		if source := slot.Member("source"); len(source) > 0 {
			add = rawjson.AppendListed(add, `"titleSource":`+string(source))
		}
	}
	var edits rawjson.Edits
	if len(gone) > 0 {
		edits = edits.Object(header, 0, string(add), func(m rawjson.Member) bool { return slices.ContainsFunc(gone, m.KeyIs) })
	}
	var none resolver
	if edits, err = none.textEdits(edits, header, 0); err != nil {
		return nil, err
	}
	return textDocument(s, append(edits.Apply(header), '\n')), nil
}

// ReadHeaderOf reads the header of a file without indexing it; nil where the file is no session.
func ReadHeaderOf(files storage.Storage, name string) (rawjson.Value, error) {
	obj, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer obj.Close()
	st, err := obj.Stat()
	if err != nil {
		return nil, err
	}
	var header rawjson.Value
	x := newIndex()
	err = jsonl.LoadFirst(obj, st.Size, func(u *jsonl.Unit) error {
		if err := x.add(u); err != nil {
			return err
		}
		if x.header.found {
			header = slices.Clone(u.Text)
			return jsonl.ErrStop
		}
		return nil
	})
	return header, err
}

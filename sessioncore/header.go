package sessioncore

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage"
)

// addHeader adds the first values of the file: a title slot on the very first line, and the header.
// The error is ErrNotSession if the value is neither.
func (x *index) addHeader(u *jsonl.Unit) error {
	v := rawjson.Value(u.Text)
	if u.Line == 1 && x.header.slot == 0 && IsTitleSlot(v) {
		x.header.slotOff = u.Off
		x.header.slot = u.Size
		x.marks = MarkOMP // no other program writes slots
		return nil
	}
	d := DialectOf(v)
	if d == nil {
		return ErrNotSession
	}
	hasSlot := x.header.slot > 0
	if hasSlot && !d.Versioned {
		return ErrNotSession
	}
	x.dialect = d
	x.header.found = true
	x.header.off = u.Off
	x.header.size = u.Size
	x.header.end = u.Off + u.Size
	x.version = CurrentVersion
	if d.Versioned {
		x.version = versionOf(v.Member("version"))
	}
	id, _ := v.Member("id").Text()
	x.header.leaseName = names.LeaseName(id)
	x.values = 1 // the header itself
	if x.version < 2 {
		x.seed = id
	}
	x.form = d.Form
	ms, form, hasTime := d.Time(v.Member("timestamp"))
	if hasTime {
		x.lastNow = ms
		x.form = form
	}
	x.header.time = x.lastNow
	return nil
}

// versionOf returns a header's version: 1 if it is absent or null (docs/format.md, Loading), and
// the current one if it is no number.
func versionOf(v rawjson.Value) int {
	if v.Missing() {
		return 1
	}
	n, err := strconv.ParseFloat(string(v), 64)
	if err != nil {
		return CurrentVersion
	}
	bounded := math.Max(-1, math.Min(n, CurrentVersion)) // so that it fits into an int
	return int(math.Floor(bounded))
}

// CurrentVersion is the version that migrations produce (docs/format.md, Old versions).
const CurrentVersion = 3

// IsTitleSlot reports whether v is a title slot (docs/format.md, Title slot).
func IsTitleSlot(v rawjson.Value) bool {
	if !v.Member("type").Is(TitleType) || string(v.Member("v")) != "1" {
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

// HeaderRange returns the range of the header's text in the backing file.
func (s *Snapshot) HeaderRange() FileRange {
	return FileRange{Offset: s.header.off, Size: s.header.size}
}

// SlotRange returns the range of the title slot's text in the backing file; ok is false without
// one.
func (s *Snapshot) SlotRange() (r FileRange, ok bool) {
	slot := FileRange{Offset: s.header.slotOff, Size: s.header.slot}
	return slot, slot.Size > 0
}

// ReadHeader reads the header and the title slot; slot is nil if the file has none. The error wraps
// storage.ErrStale if one of them was overwritten by something else.
func (s *Snapshot) ReadHeader() (header, slot rawjson.Value, err error) {
	header, err = s.read(s.header.off, s.header.size)
	if err != nil {
		return nil, nil, err
	}
	if s.header.slot > 0 {
		slot, err = s.read(s.header.slotOff, s.header.slot)
		if err != nil {
			return nil, nil, err
		}
		if !rawjson.IsValidObject(slot) || !IsTitleSlot(slot) {
			return nil, nil, s.overwritten("the header")
		}
	}
	if !rawjson.IsValidObject(header) {
		return nil, nil, s.overwritten("the header")
	}
	return header, slot, nil
}

// Title returns the session's title as WTF-8, "" if it has none. A title slot overrides the header
// (docs/format.md, Title slot). The title of a session of pi or operator is the name in the last
// session_info entry, which may be null or missing. pi trims the name.
func (s *Snapshot) Title() (string, error) {
	if s.dialect.TitleEntry {
		return s.name()
	}
	header, slot, err := s.ReadHeader()
	if err != nil {
		return "", err
	}
	holder := slot
	if slot == nil {
		holder = header
	}
	title, _ := holder.Member("title").Text()
	return title, nil
}

// name returns the name in the last session_info entry, "" if there is none.
func (s *Snapshot) name() (string, error) {
	if s.title == 0 {
		return "", nil
	}
	text, err := s.EntryText(Entry(s.title - 1))
	if err != nil {
		return "", err
	}
	name, _ := text.Member("name").Text()
	if s.dialect == Pi {
		name = rawjson.TrimSpace(name)
	}
	return name, nil
}

// HeaderDocument returns header.json: the header with the title slot merged into it, migrated to
// version 3, and a newline (docs/design.md, context.json).
func (s *Snapshot) HeaderDocument() (*document.Document, error) {
	header, slot, err := s.ReadHeader()
	if err != nil {
		return nil, err
	}
	edits := s.headerEdits(header, slot)
	var withoutBlobs document.Resolver // as a header refers to none
	edits, err = withoutBlobs.TextEdits(edits, header, 0)
	if err != nil {
		return nil, err
	}
	text := append(edits.Apply(header), '\n')
	return document.OfText(s, text), nil
}

// headerEdits returns the edits that migrate a header and merge the title slot, nil if there is none,
// into it.
func (s *Snapshot) headerEdits(header, slot rawjson.Value) rawjson.Edits {
	var edits rawjson.Edits
	var add []byte
	var removed []string
	if s.version < CurrentVersion {
		removed = append(removed, "version")
		add = append(add, `"version":3`...)
	}
	if slot != nil {
		removed = append(removed, "title", "titleSource")
		title := slot.Member("title")
		if title.Truthy() {
			add = rawjson.AppendListed(add, `"title":`+string(title))
		}
		source := slot.Member("source")
		if len(source) > 0 {
			add = rawjson.AppendListed(add, `"titleSource":`+string(source))
		}
	}
	if len(removed) == 0 {
		return edits
	}
	isRemoved := func(m rawjson.Member) bool { return slices.ContainsFunc(removed, m.KeyIs) }
	return edits.Object(header, 0, string(add), isRemoved)
}

// ReadHeaderOf returns the header of a file without indexing it, nil if the file ends before it.
// The error is ErrNotSession if another value comes first, or one of the storage.
func ReadHeaderOf(ctx context.Context, files storage.Files, name string) (rawjson.Value, error) {
	obj, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer obj.Close()
	start, size, err := startOf(obj)
	if err != nil {
		return nil, err
	}
	var header rawjson.Value
	x := newIndex(obj)
	addUntilHeader := func(u *jsonl.Unit) error {
		err := x.add(u)
		if err != nil {
			return err
		}
		if !x.header.found {
			return nil // so far only a title slot or unreadable text
		}
		header = slices.Clone(u.Text)
		return jsonl.ErrStop
	}
	err = jsonl.LoadFirst(ctx, start, size, addUntilHeader)
	return header, err
}

// startOf returns a text that begins with a session's header, and its size in bytes: the file itself
// or, as a conversion takes long, the first lines of a converted session.
func startOf(obj storage.Object) (io.ReaderAt, int64, error) {
	converted, isConverted := obj.(Converted)
	if isConverted {
		text, err := convertedStart(converted)
		return bytes.NewReader(text), int64(len(text)), err
	}
	st, err := obj.Stat()
	return obj, st.Size, err
}

// convertedStart returns a text that begins with the header of a converted session. It reads the
// beginning of the conversation only if the header is not known without.
func convertedStart(session Converted) ([]byte, error) {
	headed, mayKnow := session.(Headed)
	if mayKnow {
		header, _, err := headed.Header()
		if err != nil || len(header) > 0 {
			return header, err
		}
	}
	text, _, _, err := session.Beginning()
	return text, err
}

// Headed is an open session, converted from another agent's. Its header may be known without a record of its
// conversation.
type Headed interface {
	// Header returns the session's header as a line, nil if only Beginning tells it, and the state as
	// Beginning does, but with a guess as the size.
	Header() ([]byte, storage.Stat, error)
}

// Converted is an open session that is converted from another agent's file, which takes long.
type Converted interface {
	// Beginning returns the beginning of the session for a list, its state, and the size of the
	// agent's file, without converting that.
	Beginning() (text []byte, st storage.Stat, size int64, err error)
}

// Started is an open session, converted from another agent's file. Its header may be known by less
// than its beginning.
type Started interface {
	// Start returns the first lines of the session. Their header may lack a title and a parent. The
	// result is nil if only Beginning has the header. With named, the header has the title; without a
	// title the lines have a person's first words, if these are near enough to the beginning for a
	// list. The error wraps storage.ErrUnsupported if no session of the agent has such lines.
	Start(named bool) ([]byte, error)
}

// LeaseName returns the name of the lease that a client of the session holds (names.LeaseName).
func (s *Snapshot) LeaseName() string { return s.header.leaseName }

// probeResult holds the facts of a session's header in one state of its file.
type probeResult struct {
	token      storage.Token
	isSession  bool
	id, parent string
	idsIn      storage.Token // the state that id and parent were read in
}

// Probe returns the state of a session file without indexing it. The error is ErrNotSession or one
// of Acquire. The result is cached until the file changes.
func (s *Session) Probe(ctx context.Context) (storage.Stat, error) {
	st, _, err := s.probe(ctx, anyNames)
	return st, err
}

// ParentText returns the header's parent, a path or an id, or "". Errors come from Probe.
func (s *Session) ParentText(ctx context.Context) (string, error) {
	_, p, err := s.probe(ctx, currentNames)
	return p.parent, err
}

// ID returns the id in the header. Errors come from Probe.
func (s *Session) ID(ctx context.Context) (string, error) {
	_, p, err := s.probe(ctx, currentNames)
	return p.id, err
}

// namesNeeded tells a probe which id and which parent its caller needs.
type namesNeeded bool

const (
	anyNames     namesNeeded = false // none
	currentNames namesNeeded = true  // the names of the file's present state
)

// probe stats the file, and reads its header if the cached result may be outdated. A file that only
// grew stays a session; its header is read again for its current names alone, as an editor may have
// rewritten it.
func (s *Session) probe(ctx context.Context, needed namesNeeded) (st storage.Stat, p probeResult, err error) {
	st, err = s.store.storage.Stat(s.name)
	if err != nil {
		return storage.Stat{}, p, err
	}
	if st.Kind != storage.KindFile {
		return storage.Stat{}, p, storage.ErrNotRegular
	}
	known := s.lastProbe.Load()
	if known != nil {
		p = *known
	}
	isSame := p.token == st.Token
	hasGrown := p.isSession && p.token.SameObject(st.Token) && st.Size > p.token.Size
	isOutdated := !isSame && !hasGrown
	lacksNames := needed == currentNames && p.idsIn != st.Token
	if isOutdated || lacksNames {
		read := func() (probeResult, error) { return s.readProbe(ctx) }
		drop := func(probeResult) {} // a result that comes too late holds nothing
		p, err = storage.Await(ctx, read, drop)
		if err != nil {
			return storage.Stat{}, p, err
		}
		p.idsIn = st.Token
	}
	if p.token != st.Token {
		p.token = st.Token
		now := p
		s.lastProbe.Store(&now)
	}
	if !p.isSession {
		return storage.Stat{}, p, ErrNotSession
	}
	return st, p, nil
}

// readProbe reads up to the header. A file without one is no error: its result is no session.
func (s *Session) readProbe(ctx context.Context) (p probeResult, err error) {
	header, err := ReadHeaderOf(ctx, s.store.storage, s.name)
	if errors.Is(err, storage.ErrStale) { // it was replaced, or a compressed file had a wrong size
		header, err = ReadHeaderOf(ctx, s.store.storage, s.name)
	}
	if errors.Is(err, ErrNotSession) {
		return p, nil
	}
	d := DialectOf(header)
	if d != nil {
		p.isSession = true
		p.id, _ = header.Member("id").Text()
		p.parent, _ = header.Member(d.ParentSessionKey).Text()
	}
	return p, err
}

// FileEnding is the suffix of the names of session files.
const FileEnding = ".jsonl"

// IsSessionName reports whether a session file has this name (docs/format.md, Files).
func IsSessionName(name string) bool {
	return strings.HasSuffix(name, FileEnding) && !strings.HasPrefix(name, ".")
}

// IsSession reports whether an item of a directory is a session file, neither hidden nor a link.
func IsSession(item storage.Item) bool {
	return item.Kind == storage.KindFile && IsSessionName(item.Name)
}

// MinClientName is the minimum length of a client's file name without FileEnding: a time of 24
// characters, an underscore, and an id of at least 16. No two sessions have the same such name.
const MinClientName = 24 + 1 + 16

// OutermostOf returns the file of the outermost session around name: name itself, or X.jsonl if
// name lies below the directory X, among its artifacts.
func OutermostOf(files storage.Files, name string) string {
	outermost := name
	for dir := storage.Dir(name); dir != ""; dir = storage.Dir(dir) {
		st, err := files.Stat(dir + FileEnding)
		if err == nil && st.Kind == storage.KindFile {
			outermost = dir + FileEnding
		}
	}
	return outermost
}

// MaxPath is the maximum length in bytes of a path in parentSession: PATH_MAX without its NUL.
const MaxPath = 4095

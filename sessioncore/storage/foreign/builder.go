package foreign

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// maxWaiting is how many bytes of entries wait behind an answer that may still change.
const maxWaiting = 8 << 20

// Provider names the origin of an agent's answers. Model is that of an answer that names none.
type Provider struct{ API, Name, Model string }

// Builder makes the lines of a session for an agent whose part is a function of a record. The
// records come in the order of the file. Each entry hangs on the one before it, or on the one that
// Hang names. The answer begun last may still change, so it and the entries behind it are the tail;
// all others are final. Builder implements Converter, Titler and Rereader.
//
// Its methods copy the values that they are given. Values of a wrong kind count as missing.
type Builder struct {
	About
	provider Provider
	begin    func(*Builder) func(rawjson.Value)
	record   func(rawjson.Value)

	out    []byte
	line   int64 // of the record
	from   origin
	id     string // of the session in its records
	header Header
	opened bool // Begin was called
	begun  bool // the header is written
	at     string
	last   string // the last entry in the order of the text
	moved  int64  // the line of the record that called Hang last
	open   *Answer
	ids    map[string]struct{}
	tools  map[string][]byte // their names, by call
	model  setting
	level  setting
	named  string
	prompt string
	isTail bool   // prompts are not the first
	body   []byte // memory for the body of an entry
}

// origin is the record that entries are made of.
type origin struct {
	id   string
	part int
	time rawjson.Value
	line int64
}

// Header has the facts that begin a session, each a JSON text or missing. ID is there where About has
// none of the records. Subagent is the kind of a session that another agent called.
type Header struct{ ID, Time, Cwd, Version, Branch, Subagent rawjson.Value }

// setting is a value that an entry records before the next entry, where the value changes.
type setting struct {
	value []byte
	at    origin
	due   bool
}

// NewBuilder returns a Builder. It calls begin, with itself, for the agent's function of a record,
// and once more where a title that was found late has the file converted anew.
func NewBuilder(about About, provider Provider, begin func(*Builder) func(rawjson.Value)) *Builder {
	b := &Builder{About: about, provider: provider, begin: begin, ids: map[string]struct{}{}, tools: map[string][]byte{}}
	b.record = begin(b)
	return b
}

// Add implements Converter.
func (b *Builder) Add(out []byte, v rawjson.Value, line int64) []byte {
	b.out, b.line = out, line
	b.From("", nil)
	b.record(v)
	if b.opened && !b.begun && len(b.header.Cwd) > 0 {
		b.writeHeader()
	}
	out, b.out = b.out, nil
	return out
}

// Tail implements Converter. Where the next entry does not hang on the last one, it ends with a move
// of the leaf.
func (b *Builder) Tail(out []byte) []byte {
	if b.opened && !b.begun {
		out = b.appendHeader(out)
	}
	if b.open != nil {
		out = b.open.appendTo(out)
	}
	if b.at != b.last {
		out = AppendLeaf(out, b.at, b.moved)
	}
	return out
}

// Title implements Titler.
func (b *Builder) Title() string { return cmp.Or(b.named, b.prompt) }

// Again implements Rereader.
func (b *Builder) Again() Converter {
	about := b.About
	if about.Title = b.Title(); about.Title == b.About.Title || b.Facts {
		return nil
	}
	return NewBuilder(about, b.provider, b.begin)
}

// FindTitle returns the title in the records at both ends of a file, and beyond its beginning where
// these have none. Lines for which want returns false are not read. The Builder is of no other use.
func (b *Builder) FindTitle(obj storage.Object, size int64, want func(line []byte) bool) (string, error) {
	err := Ends(obj, size, want, func(v rawjson.Value, isHead bool) {
		b.isTail = !isHead
		b.Add(nil, v, 1)
	})
	if b.isTail = false; err == nil && b.Title() == "" {
		err = Beyond(obj, size, want, func(v rawjson.Value) bool {
			b.Add(nil, v, 1)
			return b.Title() == ""
		})
	}
	return b.Title(), err
}

// HasTalk reports whether the records in lines become messages. The Builder is of no other use.
func (b *Builder) HasTalk(lines []byte) bool {
	var out []byte
	every := func([]byte) bool { return true }
	eachObject(lines, every, func(v rawjson.Value) { out = b.Add(out, v, 1) })
	return bytes.Contains(b.Tail(out), []byte(`"message":{`))
}

// Named notes a title that a person or the agent gave. The last one counts.
func (b *Builder) Named(title string) {
	if title != "" {
		b.named = title
	}
}

// Prompted notes a prompt, whose first line is the title of a session that has no other. The first
// one counts.
func (b *Builder) Prompted(text string) {
	if b.prompt == "" && !b.isTail {
		b.prompt = FirstLine(text)
	}
}

// Begin sets the header. It counts once. A header without a directory is written with the first
// entry, since Directory may still set one.
func (b *Builder) Begin(h Header) {
	if b.opened || b.begun {
		return
	}
	if b.opened = true; h.Time.Missing() {
		h.Time = b.from.time
	}
	if id, _ := h.ID.Text(); id != "" {
		b.id = id
	}
	b.header.Time = slices.Clone(h.Time)
	b.Directory(h.Cwd)
	b.header.Version, b.header.Branch, b.header.Subagent = textOf(h.Version), textOf(h.Branch), textOf(h.Subagent)
}

// Directory sets the working directory of a header that has none and is not written.
func (b *Builder) Directory(cwd rawjson.Value) {
	if len(b.header.Cwd) == 0 {
		b.header.Cwd = textOf(cwd)
	}
}

// textOf returns a copy of a text, nil for another value.
func textOf(v rawjson.Value) rawjson.Value {
	if !v.IsString() {
		return nil
	}
	return slices.Clone(v)
}

// writeHeader writes the header, if it is not written.
func (b *Builder) writeHeader() {
	if !b.begun {
		b.out, b.begun = b.appendHeader(b.out), true
	}
}

func (b *Builder) appendHeader(dst []byte) []byte {
	dst = rawjson.AppendQuoted(append(dst, `{"type":"session","version":3,"id":`...), cmp.Or(b.id, b.ID))
	at := b.header.Time
	if !b.opened {
		at = b.from.time
	}
	dst = AppendMember(AppendMember(dst, "timestamp", at), "cwd", b.header.Cwd)
	dst = AppendMember(b.AppendMembers(dst), "cliVersion", b.header.Version)
	dst = AppendMember(AppendMember(dst, "gitBranch", b.header.Branch), "subagent", b.header.Subagent)
	return append(dst, "}\n"...)
}

// From sets the id and the time of the record that the next entries are made of. The entries get the
// ids id, id.2, id.3, …; a record without an id is named by its line.
func (b *Builder) From(id string, time rawjson.Value) {
	if id == "" {
		id = "l" + strconv.FormatInt(b.line, 10)
	}
	b.from = origin{id: id, time: time, line: b.line}
}

// nextID returns the id of the next entry of the record. No two entries get the same one.
func (b *Builder) nextID() string {
	for {
		id := b.from.id
		if b.from.part++; b.from.part > 1 {
			id += "." + strconv.Itoa(b.from.part)
		}
		if b.claim(id) {
			return id
		}
	}
}

// claim reports whether an id was free, and takes it.
func (b *Builder) claim(id string) bool {
	_, taken := b.ids[id]
	b.ids[id] = struct{}{}
	return !taken
}

// Has reports whether an entry has an id.
func (b *Builder) Has(id string) bool {
	_, has := b.ids[id]
	return has
}

// At returns the entry on which the next one hangs, "" for none.
func (b *Builder) At() string { return b.at }

// Hang makes the next entry hang on another one, "" for none. An unknown one is no entry.
func (b *Builder) Hang(id string) {
	if id != "" && !b.Has(id) {
		id = ""
	}
	b.at, b.moved = id, b.line
}

// Model notes the model that is used from now on.
func (b *Builder) Model(name rawjson.Value) { b.model.note(name, &b.from) }

// Level notes the thinking level that is used from now on.
func (b *Builder) Level(level rawjson.Value) { b.level.note(level, &b.from) }

func (s *setting) note(v rawjson.Value, at *origin) {
	if v.IsString() && !bytes.Equal(v, s.value) {
		*s = setting{slices.Clone(v), origin{id: at.id, time: slices.Clone(at.time), line: at.line}, true}
	}
}

// settings records the settings that changed.
func (b *Builder) settings() {
	if s := &b.model; s.due {
		name, _ := rawjson.Value(s.value).Text()
		body := rawjson.AppendQuoted(append(b.body[:0], `"model":`...), b.provider.Name+"/"+name)
		b.set(s, Entry{Type: "model_change", ID: s.at.id + ".model", Body: body})
	}
	if s := &b.level; s.due {
		body := append(append(b.body[:0], `"thinkingLevel":`...), s.value...)
		b.set(s, Entry{Type: "thinking_level_change", ID: s.at.id + ".level", Body: body})
	}
}

// set adds the entry of a setting.
func (b *Builder) set(s *setting, e Entry) {
	for s.due = false; !b.claim(e.ID); {
		e.ID += ".2"
	}
	e.Time, e.Lines = s.at.time, []int64{s.at.line}
	b.add(&e)
}

// start records the settings that changed, and returns memory for the body of the entry that follows
// them.
func (b *Builder) start() []byte {
	b.settings()
	return b.body[:0]
}

// put adds an entry that is made of the record.
func (b *Builder) put(typ string, body []byte) {
	b.add(&Entry{Type: typ, ID: b.nextID(), Time: b.from.time, Body: body, Lines: []int64{b.from.line}})
}

// add adds an entry to the text, or behind the answer that is open.
func (b *Builder) add(e *Entry) {
	b.writeHeader()
	e.Parent = b.at
	b.at, b.last = e.ID, e.ID
	if b.open == nil {
		b.out = e.AppendTo(b.out)
	} else {
		b.open.hold(e)
	}
	b.reuse(e.Body)
}

// reuse keeps memory for the next body, unless that is too much to keep.
func (b *Builder) reuse(body []byte) {
	if b.body = body[:0]; cap(body) > inMemory {
		b.body = nil
	}
}

package agents

import (
	"bytes"
	"maps"
	"slices"
	"strconv"

	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// maxWaiting bounds the bytes of the entries behind an answer that may still change.
const maxWaiting = 8 << 20

// Provider names the origin of an agent's answers.
type Provider struct {
	API, Name string
	Model     string // of answers that name none
	// Numbered says that changes of the model and of the thinking level have the ids of a record's
	// first two entries, as nothing else is made of it. Otherwise their ids end with .model and .level.
	Numbered bool
}

// Builder makes the lines of a session. The part of an agent is a function of a record. The
// records come in the order of the file. Each entry hangs on the one before it, or on the one that
// Hang names. The last answer may still change, so it and the entries behind it are the tail; all
// others are final.
//
// Its methods copy their arguments. Values of a wrong kind count as missing.
type Builder struct {
	About
	// InnerKey is the key of the member for Record.Inner.
	InnerKey string
	// List is the key of the list with the records in a file of one JSON object, "" if none is one.
	List string
	// RawControls says that the agent writes control characters into texts as they are.
	RawControls bool
	// Path is the path of the records' file, if that is not the session's own.
	Path string
	// Pending adds the entries that a later record may change or take back, and may move the leaf.
	// It may be nil. The Builder forgets its entries.
	Pending func()
	// Unresumed returns the record that makes the agent refuse to go on with the session, or nil, for
	// problems.jsonl. It may be nil.
	Unresumed func() *jsonl.LineProblem
	// Unique says that the ids of the agent's records are unique, and that no method needs a list of
	// them. Pending requires it.
	Unique bool
	// Chargeless reports whether a line has nothing for a bill, so that it is not read for one. It may be nil.
	Chargeless func(line []byte) bool

	provider Provider
	begin    func(*Builder) func(*Record)
	record   func(*Record)
	members  recordMembers

	out     []byte
	line    int64 // of the record
	from    Origin
	header  Header
	started bool   // Begin was called
	headed  bool   // the header is written
	early   []byte // entries of the program that wait for the header
	pending bool   // Pending is called
	at      string // the parent of the next entry
	last    string // the last entry in the order of the text
	moved   int64  // the line of the record that called Hang last
	open    *Answer
	spare   *Answer // memory for the next one
	ids     map[string]struct{}
	numbers numbers
	tools   map[string]rawjson.Value // their names, by call
	named   int64                    // bytes of the names and calls in tools
	model   setting
	level   setting
	title   string // given by a person or the agent
	prompt  string
	cwd     string   // the directory that the session moved to
	again   bool     // earlier lines are wrong
	isTail  bool     // the records' prompts are not the first
	body    []byte   // memory for an entry's body
	time    []byte   // of the last record
	billing *billing // nil if text is made
}

// Record is a value of the agent's file with its members. It is valid until the agent's function
// returns.
type Record struct {
	Object
	Value rawjson.Value
	Inner Object // the members of the member Builder.InnerKey
	Line  int64
}

// recordMembers is memory for the members of one record and of its inner object, which the next record overwrites.
type recordMembers [2]Object

// read returns an object and its members. innerKey is the key of the member for Record.Inner, "" for none.
func (m *recordMembers) read(v rawjson.Value, line int64, innerKey string) Record {
	members := m[0].Read(v)
	inner := m[1][:0]
	if innerKey != "" {
		inner = inner.Read(members.Member(innerKey))
	}
	*m = recordMembers{members, inner}
	return Record{
		Object: members,
		Value:  v,
		Inner:  inner,
		Line:   line,
	}
}

// readUnit is read for a unit of a file. The loader of the file may have found the members already.
func (m *recordMembers) readUnit(u *jsonl.Unit, innerKey string) Record {
	if len(u.Members) == 0 {
		return m.read(OneLine(u), u.Line, innerKey)
	}
	return Record{
		Object: u.Members,
		Value:  u.Text,
		Inner:  u.Inner,
		Line:   u.Line,
	}
}

// Origin is a record that entries are made from.
type Origin struct {
	id   string
	path string // Builder.Path
	part int
	time rawjson.Value
	more []int64 // lines of other records of the entry, before its own
	line int64
}

// lines returns the lines of the entry's records in a new slice, the record's own line last.
func (o *Origin) lines() []int64 { return append(o.more[:len(o.more):len(o.more)], o.line) }

// Header has the facts that begin a session, each a JSON text or missing. ID is missing where About
// has the id. Subagent is the kind of a subagent's session.
type Header struct {
	ID, Time, Cwd, Originator, Version, Branch rawjson.Value
	Git, Base, Subagent                        rawjson.Value // of any kind
	Problems                                   []string      // reasons for records that are left out
}

// AppendTo appends the header of a session as a line, and a line for each of Problems. Members that the Header lacks,
// such as the title, come from about.
func (h *Header) AppendTo(dst []byte, about *About) []byte {
	id, _ := h.ID.Text()
	if id == "" {
		id = about.ID
	}
	dst = append(dst, `{"type":"session","version":3,"id":`...)
	dst = rawjson.AppendQuoted(dst, id)
	dst = AppendMember(dst, "timestamp", h.Time)
	dst = AppendText(dst, "cwd", h.Cwd)
	dst = AppendMember(dst, "title", Quoted(about.Title))
	dst = AppendMember(dst, "parentSession", Quoted(about.Parent))
	dst = AppendText(dst, "originator", h.Originator)
	dst = AppendText(dst, "cliVersion", h.Version)
	dst = AppendText(dst, "gitBranch", h.Branch)
	dst = AppendMember(dst, "git", h.Git)
	dst = AppendMember(dst, "historyBase", h.Base)
	dst = AppendMember(dst, "subagent", h.Subagent)
	dst = append(dst, "}\n"...)
	for _, problem := range h.Problems { // a line that is no object is in problems.jsonl
		dst = rawjson.AppendQuoted(dst, problem)
		dst = append(dst, '\n')
	}
	return dst
}

// setting is a value that becomes an entry before the next one when it changes.
type setting struct {
	value   []byte
	at      Origin
	changed bool
}

// NewBuilder returns a Builder. It calls begin, with itself, for the agent's function of a record,
// and once more for each further reading of the file.
func NewBuilder(about About, provider Provider, begin func(*Builder) func(*Record)) *Builder {
	b := &Builder{
		About:    about,
		provider: provider,
		begin:    begin,
		cwd:      about.Moved,
	}
	b.ids = map[string]struct{}{}
	b.numbers = numbers{}
	b.tools = map[string]rawjson.Value{}
	b.record = begin(b)
	return b
}

// Add takes the next value of the file, an object, and the number of its line, from 1. It appends to out the lines that
// are final with it, which may be none, or lines of earlier records. v is valid until Add returns.
func (b *Builder) Add(out []byte, v rawjson.Value, line int64) []byte {
	r := b.members.read(v, line, b.InnerKey)
	return b.addRecord(out, &r)
}

// AddUnit is Add for an object as a file is loaded.
func (b *Builder) AddUnit(out []byte, u *jsonl.Unit) []byte {
	r := b.members.readUnit(u, b.InnerKey)
	return b.addRecord(out, &r)
}

// addRecord calls the agent's function for a record, and appends the lines that are final with it to out.
func (b *Builder) addRecord(out []byte, r *Record) []byte {
	b.out = out
	b.line = r.Line
	b.From("", nil)
	b.record(r)
	isComplete := b.started && len(b.header.Cwd) > 0 // else Directory may still complete the header
	if isComplete {
		b.writeHeader()
	}
	out = b.out
	b.out = nil
	b.release()
	return out
}

// release copies or drops the values that are parts of the record's text, so that the text, a whole line, can be
// freed.
func (b *Builder) release() {
	b.time = append(b.time[:0], b.from.time...)
	b.from.time = b.time
	for i, members := range b.members {
		clear(members[:cap(members)])
		b.members[i] = members[:0]
	}
}

// Tail appends the lines that later values may still change. It ends with a move of the leaf if the next entry hangs
// elsewhere. The Builder stays as it is: Pending changes it and the open answer, so both are copied before and put back
// after it. The copies share their maps, which Pending does not change, as Unique says.
func (b *Builder) Tail(out []byte) []byte {
	if b.Pending == nil {
		return b.appendTail(out)
	}
	before := *b
	open := b.open
	var saved Answer
	if open != nil {
		saved = *open
	}
	b.out = out
	b.pending = true
	b.Pending()
	out = b.appendTail(b.out)
	*b = before
	if open != nil {
		*open = saved
	}
	return out
}

// appendTail is Tail without Pending.
func (b *Builder) appendTail(out []byte) []byte {
	if b.started && !b.headed {
		out = b.appendHeader(out)
	}
	if b.open != nil {
		out = b.open.appendTo(out)
	}
	if b.at == b.last {
		return out
	}
	return b.appendLeaf(out)
}

// appendLeaf appends an entry that moves the leaf to the parent of the next entry.
func (b *Builder) appendLeaf(out []byte) []byte {
	target := Quoted(b.at)
	if len(target) == 0 { // before the first entry
		target = rawjson.Value("null")
	}
	body := []byte(`"customType":"sessionfs/leaf","data":{"targetId":`)
	body = append(body, target...)
	body = append(body, '}')
	e := Entry{
		Type:   "custom",
		ID:     "leaf",
		Parent: b.at,
		Body:   body,
		Lines:  []int64{max(1, b.moved)}, // 0 if no record moved it
	}
	return e.AppendTo(out)
}

// Title returns the title found so far: the last one given, else the first prompt, else "". If the header has another,
// Restart corrects it.
func (b *Builder) Title() string {
	if b.title != "" {
		return b.title
	}
	return b.prompt
}

// Restart returns a Builder that must reread the file from its start, as a record told that lines before it are wrong:
// the header has another title or directory, or the agent called Reread. It returns nil if all lines are right.
func (b *Builder) Restart() *Builder {
	about := b.About
	if !b.Facts {
		about.Title = b.Title()
		about.Moved = b.cwd
	}
	if about == b.About && !b.again {
		return nil
	}
	return NewBuilder(about, b.provider, b.begin)
}

// IsHeaded reports whether the header is written, so that only another reading changes it.
func (b *Builder) IsHeaded() bool { return b.headed }

// Reread notes that the record has a fact that earlier lines lack.
func (b *Builder) Reread() { b.again = true }

// Move sets the working directory that the session moved to, "" for none.
func (b *Builder) Move(cwd string) { b.cwd = cwd }

// FindTitle returns the title in the records at both ends of a file of size bytes, or else beyond its beginning; "" if
// there is none. It skips lines that want refuses. Prompts at the end are not the first one, and no title. Afterwards
// the Builder is useless, as it has some of the records only.
func (b *Builder) FindTitle(obj storage.Object, size int64, want func(line []byte) bool) (string, error) {
	line := int64(0)
	add := func(v rawjson.Value) {
		line++
		b.Add(nil, v, line)
	}
	h, err := headOf(obj, size)
	if err != nil {
		return "", err
	}
	h.records = b.records()
	err = Ends(h, size, want, func(v rawjson.Value, isHead bool) {
		b.isTail = !isHead
		add(v)
	})
	b.isTail = false
	if err == nil && b.Title() == "" {
		err = Beyond(h, size, want, func(v rawjson.Value) bool {
			add(v)
			return b.Title() == ""
		})
	}
	return b.Title(), err
}

// Named sets the title that a person or the agent gave. The last one counts. It ignores "".
func (b *Builder) Named(title string) {
	if title != "" {
		b.title = Name(title)
	}
}

// SetTitle is Named for a title that may be taken back, with "".
func (b *Builder) SetTitle(title string) { b.title = Name(title) }

// Prompted adds a prompt. The first line of the first one is the default title.
func (b *Builder) Prompted(text string) {
	if b.prompt == "" && !b.isTail {
		b.prompt = FirstLine(text)
	}
}

// Begin sets the header, with copies of the texts in h; later calls do nothing. A header without a directory is written
// with the first entry, as Directory may still set one.
func (b *Builder) Begin(h Header) {
	if b.started || b.headed {
		return
	}
	b.started = true
	if h.Time.Missing() {
		h.Time = b.from.time
	}
	b.Directory(h.Cwd)
	h.ID = factOf(h.ID)
	h.Time = slices.Clone(h.Time)
	h.Cwd = b.header.Cwd
	h.Originator = factOf(h.Originator)
	h.Version = factOf(h.Version)
	h.Branch = factOf(h.Branch)
	h.Git = slices.Clone(h.Git)
	h.Base = slices.Clone(h.Base)
	h.Subagent = slices.Clone(h.Subagent)
	b.header = h
}

// Directory sets the working directory of an unwritten header that has none.
func (b *Builder) Directory(cwd rawjson.Value) {
	if len(b.header.Cwd) == 0 {
		b.header.Cwd = factOf(cwd)
	}
}

// maxFact bounds the texts of a header, as a list holds all sessions': the longest path of the system,
// with each byte escaped.
const maxFact = 6 * 4096

// factOf is textOf for a header: it returns nil for a text longer than maxFact too.
func factOf(v rawjson.Value) rawjson.Value {
	if len(v) > maxFact {
		return nil
	}
	return textOf(v)
}

// textOf returns a copy of a text, or nil for another value.
func textOf(v rawjson.Value) rawjson.Value {
	if !v.IsString() {
		return nil
	}
	return slices.Clone(v)
}

// writeHeader appends the header, and the entries that wait for it, to the final lines; later calls do nothing.
func (b *Builder) writeHeader() {
	if !b.headed {
		b.out = b.appendHeader(b.out)
		b.headed = true
		b.early = nil
	}
}

// appendHeader appends the header, and the entries that wait for it.
func (b *Builder) appendHeader(dst []byte) []byte {
	h := b.header
	if !b.started { // the file begins with an entry
		h.Time = b.from.time
	}
	dst = h.AppendTo(dst, &b.About)
	return append(dst, b.early...)
}

// From sets the id and the time of the record of the next entries. Their ids are id, id.2, id.3, …
// A record without an id is named by its line. lines are the lines of all its records, if it has several.
func (b *Builder) From(id string, time rawjson.Value, lines ...int64) {
	b.from = Origin{
		id:   id,
		path: b.Path,
		time: time,
		line: b.line,
	}
	n := len(lines)
	if n > 0 {
		b.from.more = lines[:n-1]
		b.from.line = lines[n-1]
	}
}

// Here returns the record of the next entries, for Of.
func (b *Builder) Here() Origin {
	o := *b.origin()
	o.time = slices.Clone(o.time)
	o.more = slices.Clone(o.more)
	return o
}

// Of calls f. The entries that f makes get the id, the time and the line of record, which is an earlier
// record of the file or the current one. Of notes in record how many entries it has.
func (b *Builder) Of(record *Origin, f func()) {
	current := b.from
	path := b.Path
	isCurrent := record.id == current.id // then both count the same entries
	if isCurrent {
		record.part = current.part
	}
	b.from = *record
	b.Path = record.path
	f()
	record.part = b.from.part
	if isCurrent {
		current.part = record.part
	}
	b.from = current
	b.Path = path
}

// origin returns the record of the next entry. It names a record without an id by its line.
func (b *Builder) origin() *Origin {
	if b.from.id == "" {
		b.from.id = "l" + strconv.FormatInt(b.from.line, 10)
	}
	return &b.from
}

// nextID returns the id of the record's next entry, and uses it.
func (b *Builder) nextID() string {
	from := b.origin()
	if b.Unique {
		from.part++
		return numbered(from.id, from.part)
	}
	id := ""
	id, from.part = b.unused(from.id, from.part)
	return id
}

// unused returns the first unused id of an entry of a record with a number behind another one, and the number. It uses
// the id. Other records may have taken it, as one with the id x.2 takes the second entry's of x.
func (b *Builder) unused(record string, after int) (id string, number int) {
	number = after
	for {
		number = b.numbers.next(record, number)
		id = numbered(record, number)
		if b.claim(id) {
			return id, number
		}
	}
}

// claim uses an id, and reports whether it was free. With Unique it notes nothing, as all ids are.
func (b *Builder) claim(id string) bool {
	if b.Unique {
		return true
	}
	before := len(b.ids)
	b.ids[id] = struct{}{}
	return len(b.ids) > before
}

// At returns the parent of the next entry, or "".
func (b *Builder) At() string { return b.at }

// Last returns the entry made last, or "".
func (b *Builder) Last() string { return b.last }

// Hang makes the next entry hang on another one, or on none if id is "" or unknown.
func (b *Builder) Hang(id string) {
	if _, has := b.ids[id]; !has {
		id = ""
	}
	b.HangOn(id, b.line)
}

// HangOn is Hang for an id that need not be of an entry. line is the line of the record that says so.
func (b *Builder) HangOn(id string, line int64) {
	b.at = id
	b.moved = line
}

// Model sets the model from now on.
func (b *Builder) Model(name rawjson.Value) { b.model.note(name, b.origin()) }

// Level sets the thinking level from now on.
func (b *Builder) Level(level rawjson.Value) { b.level.note(level, b.origin()) }

// note notes the value that a record gives a setting. It ignores values that are no texts, and the present value.
func (s *setting) note(v rawjson.Value, record *Origin) {
	if !v.IsString() {
		return
	}
	v = nameOf(v)
	if bytes.Equal(v, s.value) {
		return
	}
	*s = setting{
		value:   slices.Clone(v),
		at:      *record,
		changed: true,
	}
	s.at.time = slices.Clone(record.time)
	s.at.more = nil
}

// settings adds an entry for each setting that changed since it was called last.
func (b *Builder) settings() {
	modelSuffix := ".model"
	levelSuffix := ".level"
	if b.provider.Numbered { // as numbered makes them
		modelSuffix = ""
		levelSuffix = ".2"
	}
	model := &b.model
	if model.changed {
		name, _ := rawjson.Value(model.value).Text()
		body := append(b.body[:0], `"model":`...)
		body = rawjson.AppendQuoted(body, b.provider.Name+"/"+name)
		id := model.at.id + modelSuffix
		b.set(model, Entry{Type: "model_change", ID: id, Body: body})
	}
	level := &b.level
	if level.changed {
		body := append(b.body[:0], `"thinkingLevel":`...)
		body = append(body, level.value...)
		id := level.at.id + levelSuffix
		b.set(level, Entry{Type: "thinking_level_change", ID: id, Body: body})
	}
}

// set adds the entry of a setting, with the time, the line and the file of the record that changed it.
func (b *Builder) set(s *setting, e Entry) {
	s.changed = false
	if !b.Unique {
		e.ID, _ = b.unused(e.ID, 0)
	}
	e.Time = s.at.time
	e.Lines = []int64{s.at.line}
	path := b.Path
	b.Path = s.at.path // add takes it from there
	b.add(&e)
	b.Path = path
}

// start begins an entry: it adds the settings that changed, and returns memory for the body.
func (b *Builder) start() []byte {
	b.settings()
	return b.body[:0]
}

// Include adds an entry of another session, as its line with the newline. It closes the open answer. The next entry
// hangs on the included one.
func (b *Builder) Include(id string, line []byte) {
	b.Close()
	b.writeHeader()
	b.claim(id)
	b.out = append(b.out, line...)
	b.at = id
	b.last = id
}

// KnowTools gives results the names of the tools that another session called.
func (b *Builder) KnowTools(of *Builder) { maps.Copy(b.tools, of.tools) }

// addOfRecord adds an entry of the current record, with the next id.
func (b *Builder) addOfRecord(typ string, body []byte) {
	b.add(&Entry{
		Type:  typ,
		ID:    b.nextID(),
		Time:  b.from.time,
		Body:  body,
		Lines: b.from.lines(),
	})
}

// add adds an entry to the text, or behind the open answer, and keeps the memory of its body for the next one. It sets
// the parent and the path of e. For a bill it makes no text.
func (b *Builder) add(e *Entry) {
	b.writeHeader()
	e.Parent = b.at
	e.Path = b.Path
	b.at = e.ID
	b.last = e.ID
	switch {
	case b.Bills():
	case b.open == nil:
		b.out = e.AppendTo(b.out)
	default:
		b.open.follow(e)
	}
	b.body = reuse(e.Body)
}

// held returns about how many bytes of texts the Builder keeps from records: names, titles, directories.
func (b *Builder) held() int64 {
	titles := len(b.title) + len(b.prompt) + len(b.About.Title)
	directories := len(b.cwd) + len(b.header.Cwd)
	texts := titles + directories + len(b.model.value)
	calls := 2 * b.named // the agent's own state has them too
	return calls + int64(texts)
}

// reuse returns the memory of b, empty, for another use. It returns nil if that is too large to keep.
func reuse(b []byte) []byte {
	if cap(b) > inMemory {
		return nil
	}
	return b[:0]
}

package sessioncore

import (
	"fmt"
	"hash/maphash"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage"
)

// indexRecord is an entry in the index: its position and its links, never its content.
type indexRecord struct {
	off       int64  // offset of the entry's text in the file
	time      int64  // its timestamp, or the one used instead (docs/design.md, entries/); ms since the epoch
	size      uint32 // size of the text in bytes
	line      uint32 // number of the text's first line, from 1
	crc       uint32 // CRC-32C of the text
	id        symbol // 0 for none
	parent    symbol // 0 for none
	msgOff    uint32 // offset in the text of the value of the key "message"
	msgSize   uint32 // size of that value in bytes, 0 for none
	pathLabel symbol // see pathLabelOf
	costOff   uint32 // offset in the text of an answer's cost; see Snapshot.CostRange
	costSize  uint32
	kind      EntryType
	role      Role
	flags     recordFlags
}

// end returns the offset after the entry's text.
func (r *indexRecord) end() int64 { return r.off + int64(r.size) }

// Role is a message's role, as far as the model distinguishes roles.
type Role uint8

// The roles that the model distinguishes.
const (
	RoleOther Role = iota // any other role, or not a message
	RoleUser
	RoleAssistant
	RoleToolResult
	RoleHookMessage
	RoleSystem
)

type recordFlags uint16

const (
	recTimed     recordFlags = 1 << iota // the timestamp could be read
	recBlob                              // a string begins with the blob prefix
	recIllFormed                         // the text is not valid UTF-8
	recBigNumber                         // a number may overflow a double
	recPayload                           // the message has a providerPayload
	recManyLines                         // the text spans several lines
	recLeafMove                          // the entry records a move of the leaf
	recMigrated                          // a migration changes the entry
	recEndsLine                          // the byte after the text is a newline
	recRequest                           // the entry is a person's request
)

// labelRecord is a label entry. The newest one for a target is in effect.
type labelRecord struct {
	target symbol
	entry  uint32
	label  string // "" clears; a long one is cut
	name   string // the file name of a label that is cut, "" for others
}

// contents are the facts about the entries of a file. A snapshot has a copy of the index's.
type contents struct {
	symbols symbolTable
	records []indexRecord
	// labelSets are the label entries in file order.
	labelSets    []labelRecord
	labelBytes   int // the memory of the texts in labelSets
	problems     []Problem
	problemCount int64    // number of all problems of reading, including those beyond maxProblems
	longIDs      []symbol // ids with names that are cut
	// ordinals holds, for version 1 files, the number of each entry among the values
	// (docs/format.md, Old versions).
	ordinals []uint32

	header  headerRef
	dialect *Dialect // of the index: by the header alone
	version int
	lastID  uint32           // 1 + the number of the last entry with an id, 0 for none
	leafID  symbol           // the id of the leaf according to the file, 0 for none
	title   uint32           // 1 + the number of the entry that holds the title, 0 for none
	form    rawjson.TimeForm // of the last timestamp
}

// index is the index of one open file. Its contents only grow at their ends; only the holder of
// Session.mu writes them.
type index struct {
	file      storage.Object
	snapshots atomic.Int32 // that show the file; the last one to be released closes it
	// overwritten reports whether an entry was found changed: the file must be reread as a whole.
	overwritten atomic.Bool
	confirmed   confirmedEntries
	mu          sync.Mutex // guards facts
	facts       map[any]any

	contents
	resume  jsonl.Position // the start of the next load
	marks   Marks
	values  int64  // values read, counting the header but not a title slot
	lastNow int64  // the time of the previous entry, for entries without one
	seed    string // of version 1: the header's id, from which entry ids are derived
}

// newIndex returns an empty index of an open file.
func newIndex(file storage.Object) *index {
	symbols := symbolTable{symbols: make([]symbolInfo, 1), slots: make([]uint32, firstSlots)}
	return &index{file: file, contents: contents{symbols: symbols}}
}

// headerRef is the position of the header and of the title slot.
type headerRef struct {
	found   bool
	off     int64
	size    int64
	slotOff int64
	slot    int64 // size of the slot's value in bytes, 0 for none

	leaseName string // the name that the client gives to the session's lease
	end       int64  // offset after the header
	time      int64  // its timestamp in ms since the epoch
}

// maxEntries is the maximum number of entries in a session: entry numbers have 32 bits.
const maxEntries = math.MaxInt32

// maxQuoted bounds the bytes of a quoted value in a problem.
const maxQuoted = 200

// noObject returns the problem of a value that is no object. It quotes the value if that is a short
// string: a session of another agent's file has such strings for unreadable parts.
func noObject(u *jsonl.Unit) Problem {
	p := Problem{
		Line:   u.Line,
		Offset: u.Off,
		Size:   u.Size,
		What:   ProblemNoObject,
	}
	p.Why = "a JSON value that is no object is no entry"
	text, ok := rawjson.Value(u.Text).Text()
	if ok && len(u.Text) <= maxQuoted {
		p.Why += rawjson.JSONText(": " + text)
		p.own = p.inOwnFile(text)
	}
	return p
}

// inOwnFile returns p, a ProblemNoObject, as a problem of the line in another agent's file that a
// value describes, nil if it describes none.
func (p Problem) inOwnFile(value string) *Problem {
	line, ok := jsonl.ParseLineProblem(value)
	if !ok {
		return nil
	}
	p.Line = line.Line
	p.Size = line.Size
	p.Why = rawjson.JSONText(line.Why)
	switch {
	case strings.HasPrefix(line.Why, jsonl.ReasonNoResume):
		p.What = ProblemNoResume
	case line.Why != jsonl.ReasonNoObject:
		p.What = ProblemSkipped
	}
	return &p
}

// unitProblem records a problem of a whole unit.
func (x *index) unitProblem(u *jsonl.Unit, what ProblemKind, why rawjson.JSONText) {
	x.problem(Problem{
		Line:   u.Line,
		Offset: u.Off,
		Size:   u.Size,
		What:   what,
		Why:    why,
	})
}

// add adds a unit to the index: an entry or a problem, or until there is one the header. The error
// wraps ErrNotSession: the first value is not a header, or the entries are too many.
func (x *index) add(u *jsonl.Unit) error {
	if u.Trailing > 0 {
		p := Problem{Line: u.Line, Offset: u.Off + u.Size, Size: u.Trailing}
		p.What = ProblemSkipped
		p.Why = jsonl.ReasonTrailing
		x.problem(p)
	}
	if u.Kind == jsonl.SkippedUnit {
		x.unitProblem(u, ProblemSkipped, rawjson.JSONText(u.Reason))
		return nil
	}
	if !x.header.found {
		return x.addHeader(u)
	}
	x.values++
	if u.Kind == jsonl.OtherUnit {
		x.problem(noObject(u))
		return nil
	}
	kind := x.dialect.TypeOf(u.Info.Type.Of(u.Text))
	if kind == typeHeader {
		x.unitProblem(u, ProblemHeader, "a second session header is no entry")
		return nil
	}
	if len(x.records) >= maxEntries || x.symbols.full() {
		return fmt.Errorf("%w: too many entries or too long ids to index", ErrNotSession)
	}
	x.addEntry(u, kind)
	return nil
}

// addEntry adds an entry of a type to the index. It sets the fields of the record first, each step by
// those before it; then the record's effects on the whole session.
func (x *index) addEntry(u *jsonl.Unit, kind EntryType) {
	n := uint32(len(x.records))
	rec := indexRecord{
		off:   u.Off,
		size:  uint32(u.Size),
		line:  uint32(u.Line),
		crc:   u.Info.CRC,
		kind:  kind,
		flags: textFlags(u),
	}
	x.setTime(&rec, u)
	setMessage(&rec, u)
	if x.version < 2 {
		x.migrateLinks(&rec, u, n)
	} else {
		x.link(&rec, u)
	}
	if x.version < 3 && rec.kind == TypeMessage && rec.role == RoleHookMessage {
		rec.flags |= recMigrated
	}
	rec.pathLabel = x.pathLabelOf(&rec, u)
	if isRequest(&rec, u) {
		rec.flags |= recRequest
	}
	switch rec.kind {
	case TypeLabel:
		x.addLabel(u, n)
	case TypeSessionInfo:
		x.title = n + 1
	}
	if mayMark(&rec) && x.marks&MarkOMP == 0 { // MarkOMP alone decides (ProgramOfSession)
		x.marks |= MarksOf(u.Text)
	}
	x.moveLeaf(&rec, u)
	x.records = append(x.records, rec)
	if rec.id == 0 {
		x.unitProblem(u, ProblemNoID, "the entry has no id: it is in no tree and no path")
		return
	}
	x.lastID = n + 1
	// Stored last: a reader that sees the new number ignores it unless its snapshot has that entry.
	atomic.StoreUint32(&x.symbols.symbols[rec.id].last, n+1)
}

// setTime sets a record's time: its timestamp, or the time of the entry before it if that cannot be
// read.
func (x *index) setTime(rec *indexRecord, u *jsonl.Unit) {
	ms, form, ok := x.dialect.Time(u.Info.Time.Of(u.Text))
	if ok {
		x.lastNow = ms
		x.form = form
		rec.flags |= recTimed
	}
	rec.time = x.lastNow
}

// setMessage sets the position, the role and the cost of a record's message, if it has one.
func setMessage(rec *indexRecord, u *jsonl.Unit) {
	info := u.Info
	if info.Message.End == 0 {
		return
	}
	rec.msgOff = info.Message.Start
	rec.msgSize = info.Message.End - info.Message.Start
	role, _ := info.Role.Of(u.Text).Bytes()
	rec.role = roles[string(role)]
	rec.costOff = info.Cost.Start
	rec.costSize = info.Cost.End - info.Cost.Start
}

// mayMark reports whether an entry may have a mark of the program that wrote it, by its type.
func mayMark(rec *indexRecord) bool {
	switch rec.kind {
	case TypeMessage:
		return rec.role == RoleSystem
	case TypeUnknown, TypeThinkingLevelChange, TypeCustom, TypeCustomMessage, TypeLabel:
		return false
	}
	return true
}

// moveLeaf updates the leaf for a record that is about to be added: to its own entry, or to the
// target of a move (docs/design.md, leaf; docs/format.md, Operator dialect). Entries without an id
// do not count. It also sets the flag of a move in the record.
func (x *index) moveLeaf(rec *indexRecord, u *jsonl.Unit) {
	var target rawjson.Value
	isMove := false
	if rec.kind == x.dialect.MoveType {
		target, isMove = x.dialect.MoveTarget(u.Text)
	}
	if isMove {
		rec.flags |= recLeafMove
	}
	switch {
	case rec.id == 0:
		return
	case !isMove:
		x.leafID = rec.id
		return
	case target.IsNull():
		x.leafID = 0
		return
	}
	moved := x.idOf(target)
	if moved == 0 && x.dialect.OwnLeaf {
		moved = rec.id
	}
	if moved != 0 {
		x.leafID = moved
	}
}

// idOf returns the id in a JSON string, 0 if no entry has it yet or the value is no string.
func (x *index) idOf(v rawjson.Value) symbol {
	text, isText := v.Bytes()
	if !isText {
		return 0
	}
	id := x.symbols.find(text)
	if id == 0 || x.symbols.symbols[id].last == 0 {
		return 0 // at most a parent or a label's target
	}
	return id
}

// textFlags returns the flags that a unit's text determines.
func textFlags(u *jsonl.Unit) (f recordFlags) {
	set := func(flag recordFlags, has bool) {
		if has {
			f |= flag
		}
	}
	set(recBlob, u.Info.Flags&rawjson.HasBlob != 0)
	set(recBigNumber, u.Info.Flags&rawjson.HasBigNumber != 0)
	set(recIllFormed, u.Info.IllFormed)
	set(recEndsLine, u.EndsLine)
	set(recPayload, u.Info.Payload)
	set(recManyLines, u.Loose && manyLines(u.Text))
	return f
}

var roles = map[string]Role{
	"user": RoleUser, "assistant": RoleAssistant, toolResultRole: RoleToolResult, "hookMessage": RoleHookMessage,
	"system": RoleSystem,
}

// link sets an entry's id and parent as the file gives them, 0 for an empty or missing parent.
func (x *index) link(rec *indexRecord, u *jsonl.Unit) {
	id, hasID := u.Info.ID.Of(u.Text).Bytes()
	if hasID {
		x.setID(rec, id)
	}
	span := u.Info.Parents[x.dialect.Spelling]
	parent, _ := span.Of(u.Text).Bytes()
	if len(parent) > 0 {
		rec.parent = x.symbols.intern(parent)
	}
}

// setID sets the id of a record that is about to be added. An id of an earlier entry is a problem.
func (x *index) setID(rec *indexRecord, id []byte) {
	rec.id = x.symbols.intern(id)
	before := x.symbols.symbols[rec.id].last
	isNew := before == 0
	if isNew {
		if names.TooLong(id) {
			x.longIDs = append(x.longIDs, rec.id)
		}
		return
	}
	line := x.records[before-1].line
	why := fmt.Sprintf("the id was used before, on line %d: the later entry counts", line)
	x.problem(Problem{
		Line:   int64(rec.line),
		Offset: rec.off,
		Size:   int64(rec.size),
		What:   ProblemRepeated,
		ID:     rawjson.JSONText(id),
		Why:    rawjson.JSONText(why),
	})
}

// addLabel records a label entry with the number n (docs/format.md, Loading: an absent, null or empty
// label clears). One without a target has no effect. A long label is cut between two characters.
func (x *index) addLabel(u *jsonl.Unit, n uint32) {
	v := rawjson.Value(u.Text)
	target, ok := v.Member(x.dialect.TargetKey).Text()
	if !ok {
		return
	}
	set := labelRecord{
		target: x.symbols.intern([]byte(target)),
		entry:  n,
		label:  labelIn(v),
	}
	if len(set.label) > maxLabel {
		set.name = names.FileName(set.label)
		end := maxLabel
		for !utf8.RuneStart(set.label[end]) {
			end--
		}
		set.label = set.label[:end] + "…"
	}
	x.labelBytes += len(set.label) + len(set.name)
	x.labelSets = append(x.labelSets, set)
}

// labelIn returns the label that a label entry sets, "" if it clears one.
func labelIn(text rawjson.Value) string {
	label := text.Member("label")
	if !label.Truthy() {
		return ""
	}
	return label.AsKey()
}

// maxLabel bounds a label in memory, in bytes: an index has the labels of a whole session. The entry that sets it has all of it.
const maxLabel = 4 << 10

// maxPathLabel is the maximum length of a path label in bytes. It leaves room for the id within 255
// bytes, and keeps names readable.
const maxPathLabel = 40

// The roles of a tool result as the dialects write them. Both are shown as toolResult.
const (
	toolResultRole  = "toolResult"
	toolResultSnake = "tool_result"
)

// pathLabelOf returns the path label of an entry: the role of its message, "toolResult-<tool>" for
// a tool result, otherwise the text of its type. The label is encoded as a name and cut at
// maxPathLabel.
func (x *index) pathLabelOf(rec *indexRecord, u *jsonl.Unit) symbol {
	var buf [maxPathLabel]byte
	label := buf[:0]
	role := u.Info.Role.Of(u.Text)
	text, _ := role.Bytes()
	switch {
	case rec.kind != TypeMessage || len(text) == 0: // no role: the type describes the entry
		text, _ = u.Info.Type.Of(u.Text).Bytes()
	case rec.role == RoleHookMessage && rec.flags&recMigrated != 0:
		text = []byte("custom") // as its file shows it
	case rec.role == RoleToolResult || role.Is(toolResultSnake):
		text = []byte(toolResultRole)
		tool, _ := u.Info.Tool.Of(u.Text).Bytes()
		if len(tool) > 0 {
			label = append(label, toolResultRole+"-"...)
			text = tool
		}
	}
	return x.symbols.intern(names.AppendCut(label, text, maxPathLabel))
}

// PathLabel returns the description of the entry in its name in branches/…/path/ (docs/design.md,
// branches/): the role of its message ("toolResult-<tool>" for a tool result), otherwise its type,
// encoded as a name and cut at 40 bytes.
func (s *Snapshot) PathLabel(e Entry) string { return string(s.symbols.text(s.records[e].pathLabel)) }

// symbol is a number for a text of a session, 0 for none. Entry ids, parentIds and label targets
// share the table, which stores each text once.
type symbol uint32

// symbolInfo is a symbol's text in the arena, and the last entry with it as its id.
type symbolInfo struct {
	off, length uint32
	// last is 1 + the number of the newest entry with this id, 0 for none. Readers of older
	// snapshots ignore entries beyond theirs.
	last uint32
}

// symbolTable is append-only: the part of a snapshot never moves, so its readers continue without a
// lock while the only indexer adds symbols.
type symbolTable struct {
	arena   []byte
	symbols []symbolInfo // symbols[0] is unused
	slots   []uint32     // open addressing; a symbol or 0
}

// hashSeed is random in each process, so that no file can be made to have collisions.
var hashSeed = maphash.MakeSeed()

const firstSlots = 64

// text returns a symbol's text. Callers must not modify it.
func (t *symbolTable) text(s symbol) []byte {
	info := &t.symbols[s]
	return t.arena[info.off : info.off+info.length]
}

// find returns the symbol of a text, or 0.
func (t *symbolTable) find(text []byte) symbol {
	mask := uint64(len(t.slots) - 1)
	at := maphash.Bytes(hashSeed, text) & mask
	for {
		s := atomic.LoadUint32(&t.slots[at])
		if s == 0 {
			return 0
		}
		// A snapshot may be older than the slots that it shares: newer symbols are not its own.
		if int(s) < len(t.symbols) && string(t.text(symbol(s))) == string(text) {
			return symbol(s)
		}
		at = (at + 1) & mask
	}
}

// intern returns the symbol of a text, adding it if necessary. It keeps a copy of the text.
func (t *symbolTable) intern(text []byte) symbol {
	known := t.find(text)
	if known != 0 {
		return known
	}
	isHalfFull := (len(t.symbols)+1)*2 > len(t.slots) // beyond that, searches would become long
	if isHalfFull {
		t.grow()
	}
	s := symbol(len(t.symbols))
	info := symbolInfo{
		off:    uint32(len(t.arena)),
		length: uint32(len(text)),
	}
	t.symbols = append(t.symbols, info)
	t.arena = append(t.arena, text...)
	t.place(s)
	return s
}

// place adds a symbol to the slots.
func (t *symbolTable) place(s symbol) {
	mask := uint64(len(t.slots) - 1)
	at := maphash.Bytes(hashSeed, t.text(s)) & mask
	for t.slots[at] != 0 {
		at = (at + 1) & mask
	}
	atomic.StoreUint32(&t.slots[at], uint32(s))
}

// grow allocates new slots. Older snapshots keep the old ones, which have all of their symbols.
func (t *symbolTable) grow() {
	t.slots = make([]uint32, 2*len(t.slots))
	for s := 1; s < len(t.symbols); s++ {
		t.place(symbol(s))
	}
}

// maxArena bounds the bytes of texts, as offsets have 32 bits. Larger files are not indexed.
const maxArena = 1 << 31

// full reports whether no more text may be added.
func (t *symbolTable) full() bool { return len(t.arena) > maxArena }

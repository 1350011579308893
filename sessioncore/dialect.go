package sessioncore

import (
	"time"

	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
)

// Dialect is the words in which a program writes the one model that sessioncore has (docs/design.md section 9). The
// header decides the dialect of a file from its first line to its last. A Dialect is data: code that differs between
// dialects asks it, or compares it with OMP and Operator.
type Dialect struct {
	HeaderType string // the type of headers
	types      map[string]EntryType
	Spelling   jsonl.Spelling // of keys

	// The keys of members that every dialect has.
	ParentKey, TargetKey, FromKey, KeptKey, thinkingLevel, ParentSessionKey string

	// Versioned: the header has a version, by which old files are migrated, and a title slot may stand before it.
	Versioned bool
	// TitleEntry: the session's title is the name of the last session_info entry, not the header's.
	TitleEntry bool
	// Form is the form of timestamps in a file that has none to go by.
	Form rawjson.TimeForm

	// MoveType is the type of entries that can move the leaf.
	MoveType EntryType
	// OwnLeaf: a move to nowhere makes itself the leaf; else it is as if it were not there.
	OwnLeaf bool

	context contextWords

	// DataFirst: custom entries and messages begin with their own fields.
	DataFirst bool
	// NullLabel: a label entry that clears says so with null; else it has no label.
	NullLabel bool
	// FileTime is the layout of the time that file names begin with.
	FileTime string
}

// contextWords are how a context is worded (docs/format.md, Context).
type contextWords struct {
	branchRole     string
	branchKeys     []string
	compactionRole string
	compactionKeys []string
	// customMessages: custom_message entries are for the model, not for the user interface alone.
	customMessages bool
	// providerHistory: a provider may keep the history, and messages carry it as a payload.
	providerHistory bool
}

var (
	// OMP is the dialect of omp, xcsh and pi.
	OMP = &Dialect{
		HeaderType: "session", types: ompTypes, Spelling: jsonl.CamelCase,
		ParentKey: "parentId", TargetKey: "targetId", FromKey: "fromId", KeptKey: keptKey,
		thinkingLevel: "thinkingLevel", ParentSessionKey: "parentSession",
		Versioned: true, Form: rawjson.TimeZulu,
		MoveType: TypeCustom, OwnLeaf: true,
		context: contextWords{
			branchRole: "branchSummary", branchKeys: []string{"summary", "fromId"},
			compactionRole: "compactionSummary", compactionKeys: []string{"summary", "shortSummary", "tokensBefore"},
			customMessages: true, providerHistory: true,
		},
		DataFirst: true, FileTime: rawjson.TimestampLayout,
	}
	// Operator is the dialect of operator (docs/format.md, Operator dialect).
	Operator = &Dialect{
		HeaderType: "session_header", types: operatorTypes, Spelling: jsonl.SnakeCase,
		ParentKey: "parent_id", TargetKey: "target_id", FromKey: "from_id", KeptKey: "first_kept_entry_id",
		thinkingLevel: "thinking_level", ParentSessionKey: "parent_session",
		TitleEntry: true, Form: rawjson.TimeOffset,
		MoveType: TypeLeaf,
		context: contextWords{
			branchRole: "branch_summary", branchKeys: []string{"summary", "from_id"},
			compactionRole: "compaction_summary", compactionKeys: []string{"summary", "tokens_before"},
		},
		NullLabel: true, FileTime: "2006-01-02T15:04:05.000000",
	}
)

// Time reads a timestamp: milliseconds since the epoch, and the form that it has. ok is false where it cannot be read.
func (d *Dialect) Time(v rawjson.Value) (ms int64, form rawjson.TimeForm, ok bool) {
	if d == Operator {
		return rawjson.ReadOperatorTimestamp(v)
	}
	return rawjson.ReadTimestamp(v)
}

// DialectOf returns the dialect that a header is of, nil where a value is no header: an object with one
// of the types of headers and a string id, which may be empty (docs/format.md, Loading).
func DialectOf(v rawjson.Value) *Dialect {
	if typ, ok := v.Member("type").Text(); ok && v.Member("id").IsString() {
		return DialectOfType(typ)
	}
	return nil
}

// DialectOfType returns the dialect whose headers are of a type, nil for none.
func DialectOfType(typ string) *Dialect {
	switch typ {
	case OMP.HeaderType:
		return OMP
	case Operator.HeaderType:
		return Operator
	}
	return nil
}

// TypeOf returns the type that a JSON value names.
func (d *Dialect) TypeOf(v rawjson.Value) EntryType {
	if !v.IsString() {
		return TypeUnknown
	}
	if t, ok := d.types[string(v[1:len(v)-1])]; ok {
		return t
	}
	text, _ := v.Text()
	return d.types[text]
}

// Dialect returns the dialect that the session is of.
func (s *Snapshot) Dialect() *Dialect { return s.dialect }

// TimeForm returns how times are written that are added to the session: as its last timestamp.
func (s *Snapshot) TimeForm() rawjson.TimeForm { return s.form }

// Dialect returns the dialect that the session is of.
func (s *Session) Dialect() (*Dialect, error) {
	snap, err := s.Acquire()
	if err != nil {
		return nil, err
	}
	defer snap.Release()
	return snap.dialect, nil
}

// recentLook is how long ago a look at a session's file is at most that tells its dialect in all likelihood. A file that
// was replaced since then is read while the lock is held.
const recentLook = time.Second

// RecentDialect returns the dialect that the session was of when its file changed or was read a moment ago, nil where
// that is longer ago.
func (s *Session) RecentDialect() *Dialect {
	cur := s.current.Load()
	if cur == nil || time.Now().UnixNano()-cur.readAt > int64(recentLook) {
		return nil
	}
	return cur.dialect
}

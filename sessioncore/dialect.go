package sessioncore

import (
	"time"

	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
)

// dialect is how a program words the one model that sessioncore has (docs/design.md section 9). The header
// says of which dialect a file is, from its first line to its last; whatever differs between dialects is
// asked of the table that is here.
type dialect struct {
	headerType string
	types      map[string]EntryType
	spelling   jsonl.Spelling

	// The keys of members that both have.
	parent, target, from, kept, thinkingLevel, parentSession string

	// versioned: the header has a version, by which old files are migrated, and a title slot may stand
	// before it.
	versioned bool
	// titleEntry: the session's title is the name of the last session_info entry, not the header's.
	titleEntry bool
	// form is that of timestamps in a file that has none to go by.
	form rawjson.TimeForm

	// moveType is the type of entries that can move the leaf.
	moveType EntryType
	// ownLeaf: a move to nowhere makes itself the leaf; else it is as if it were not there.
	ownLeaf bool

	context contextWords

	// dataFirst: custom entries and messages begin with their own fields.
	dataFirst bool
	// nullLabel: a label entry that clears says so with null; else it has no label.
	nullLabel bool
	// fileTime is the layout of the time that file names begin with.
	fileTime string
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
	// omp is the dialect of omp, xcsh and pi.
	omp = &dialect{
		headerType: "session", types: ompTypes, spelling: jsonl.CamelCase,
		parent: "parentId", target: "targetId", from: "fromId", kept: keptKey,
		thinkingLevel: "thinkingLevel", parentSession: "parentSession",
		versioned: true, form: rawjson.TimeZulu,
		moveType: TypeCustom, ownLeaf: true,
		context: contextWords{
			branchRole: "branchSummary", branchKeys: []string{"summary", "fromId"},
			compactionRole: "compactionSummary", compactionKeys: []string{"summary", "shortSummary", "tokensBefore"},
			customMessages: true, providerHistory: true,
		},
		dataFirst: true, fileTime: rawjson.TimestampLayout,
	}
	// operator is the dialect of operator (docs/format.md, Operator dialect).
	operator = &dialect{
		headerType: "session_header", types: operatorTypes, spelling: jsonl.SnakeCase,
		parent: "parent_id", target: "target_id", from: "from_id", kept: "first_kept_entry_id",
		thinkingLevel: "thinking_level", parentSession: "parent_session",
		titleEntry: true, form: rawjson.TimeOffset,
		moveType: TypeLeaf,
		context: contextWords{
			branchRole: "branch_summary", branchKeys: []string{"summary", "from_id"},
			compactionRole: "compaction_summary", compactionKeys: []string{"summary", "tokens_before"},
		},
		nullLabel: true, fileTime: "2006-01-02T15:04:05.000000",
	}
)

// time reads a timestamp.
func (d *dialect) time(v rawjson.Value) (ms int64, form rawjson.TimeForm, ok bool) {
	if d == operator {
		return rawjson.ReadOperatorTimestamp(v)
	}
	return rawjson.ReadTimestamp(v)
}

// dialectOf returns the dialect that a header is of, nil where a value is no header: an object with one
// of the types of headers and a string id, which may be empty (docs/format.md, Loading).
func dialectOf(v rawjson.Value) *dialect {
	if typ, ok := v.Member("type").Text(); ok && v.Member("id").IsString() {
		return dialectOfType(typ)
	}
	return nil
}

// dialectOfType returns the dialect whose headers are of a type, nil for none.
func dialectOfType(typ string) *dialect {
	switch typ {
	case omp.headerType:
		return omp
	case operator.headerType:
		return operator
	}
	return nil
}

// typeOf returns the type that a JSON value names.
func (d *dialect) typeOf(v rawjson.Value) EntryType {
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
func (s *Snapshot) Dialect() *dialect { return s.dialect }

// TimeForm returns how times are written that are added to the session: as its last timestamp.
func (s *Snapshot) TimeForm() rawjson.TimeForm { return s.form }

// Dialect returns the dialect that the session is of.
func (s *Session) Dialect() (*dialect, error) {
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

// recentDialect returns the dialect that the session was of when its file changed or was read a moment ago, nil where
// that is longer ago.
func (s *Session) recentDialect() *dialect {
	cur := s.current.Load()
	if cur == nil || time.Now().UnixNano()-cur.readAt > int64(recentLook) {
		return nil
	}
	return cur.dialect
}

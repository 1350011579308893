package sessioncore

import (
	"context"

	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
)

// Dialect is the vocabulary that a client writes the model in (docs/design.md section 9). The
// header decides the dialect of the whole file; OMP and Pi have the same, and the agent directory
// and the entries distinguish them (docs/format.md, Whose session it is). Code that differs between
// dialects reads the fields of a Dialect or compares it with OMP, Pi and Operator. Dialects are
// immutable.
type Dialect struct {
	HeaderType string // the type of a header
	types      map[string]EntryType
	Spelling   jsonl.Spelling // of keys

	// Keys of members that every dialect has.
	ParentKey, TargetKey, FromKey, KeptKey, ParentSessionKey string

	// Versioned reports whether the header has a version and may follow a title slot.
	Versioned bool
	// TitleEntry reports whether the title is in the last session_info entry instead of the header.
	TitleEntry bool
	// Form is the form of timestamps in a file that has none yet.
	Form rawjson.TimeForm

	// MoveType is the type of the entries that can move the leaf.
	MoveType EntryType
	// OwnLeaf reports whether a move to an unknown entry becomes the leaf. Otherwise it is ignored.
	OwnLeaf bool

	context contextWords

	// DataFirst reports whether custom entries and messages begin with their own fields.
	DataFirst bool
	// NullLabel reports whether a cleared label is written as null instead of omitted.
	NullLabel bool
	// FileTime is the time.Format layout of the time at the start of file names.
	FileTime string
}

// contextWords is the vocabulary of a context (docs/format.md, Context).
type contextWords struct {
	branchRole     string
	branchKeys     []string
	compactionRole string
	compactionKeys []string
	// customKeys are the members of a custom_message for the model; nil if such entries are only
	// for the user interface.
	customKeys []string
	// providerHistory reports whether messages may carry a provider's history as a payload.
	providerHistory bool
}

var (
	// OMP is the dialect of omp and xcsh.
	OMP = &Dialect{
		HeaderType:       "session",
		types:            ompTypes,
		Spelling:         jsonl.CamelCase,
		ParentKey:        "parentId",
		TargetKey:        "targetId",
		FromKey:          "fromId",
		KeptKey:          keptKey,
		ParentSessionKey: "parentSession",
		Versioned:        true,
		Form:             rawjson.TimeZulu,
		MoveType:         TypeCustom,
		OwnLeaf:          true,
		context: contextWords{
			branchRole:      "branchSummary",
			branchKeys:      []string{"summary", "fromId"},
			compactionRole:  "compactionSummary",
			compactionKeys:  []string{"summary", "shortSummary", "tokensBefore"},
			customKeys:      []string{"customType", "content", "display", "details", "attribution"},
			providerHistory: true,
		},
		DataFirst: true,
		FileTime:  rawjson.TimestampLayout,
	}
	// Pi is the dialect of pi: omp's, except for title, context and some types (docs/format.md).
	Pi = &Dialect{
		HeaderType:       "session",
		types:            ompTypes,
		Spelling:         jsonl.CamelCase,
		ParentKey:        "parentId",
		TargetKey:        "targetId",
		FromKey:          "fromId",
		KeptKey:          keptKey,
		ParentSessionKey: "parentSession",
		TitleEntry:       true,
		Versioned:        true,
		Form:             rawjson.TimeZulu,
		MoveType:         TypeCustom,
		OwnLeaf:          true,
		context: contextWords{
			branchRole:     "branchSummary",
			branchKeys:     []string{"summary", "fromId"},
			compactionRole: "compactionSummary",
			compactionKeys: []string{"summary", "tokensBefore"},
			customKeys:     []string{"customType", "content", "display", "details"},
		},
		DataFirst: true,
		FileTime:  rawjson.TimestampLayout,
	}
	// Operator is the dialect of operator (docs/format.md, Operator dialect).
	Operator = &Dialect{
		HeaderType:       "session_header",
		types:            operatorTypes,
		Spelling:         jsonl.SnakeCase,
		ParentKey:        "parent_id",
		TargetKey:        "target_id",
		FromKey:          "from_id",
		KeptKey:          "first_kept_entry_id",
		ParentSessionKey: "parent_session",
		TitleEntry:       true,
		Form:             rawjson.TimeOffset,
		MoveType:         TypeLeaf,
		context: contextWords{
			branchRole:     "branch_summary",
			branchKeys:     []string{"summary", "from_id"},
			compactionRole: "compaction_summary",
			compactionKeys: []string{"summary", "tokens_before"},
		},
		NullLabel: true,
		FileTime:  "2006-01-02T15:04:05.000000",
	}
)

// Time parses a timestamp. It returns milliseconds since the epoch and the form of the timestamp.
// ok is false if it is invalid.
func (d *Dialect) Time(v rawjson.Value) (ms int64, form rawjson.TimeForm, ok bool) {
	if d == Operator {
		return rawjson.ReadOperatorTimestamp(v)
	}
	return rawjson.ReadTimestamp(v)
}

// IsOMP reports whether d is OMP or Pi, which have the same header and the same words.
func (d *Dialect) IsOMP() bool { return d == OMP || d == Pi }

// OfProgram returns the dialect of a session of program p with a header of dialect d.
func (d *Dialect) OfProgram(p Program) *Dialect {
	if d.IsOMP() && p == ByPi {
		return Pi
	}
	return d
}

// DialectOf returns the dialect of a header, OMP for Pi, or nil if v is none: an object with a
// header type and a string id, which may be empty (docs/format.md, Loading).
func DialectOf(v rawjson.Value) *Dialect {
	typ, ok := v.Member("type").Text()
	if ok && v.Member("id").IsString() {
		return DialectOfType(typ)
	}
	return nil
}

// DialectOfType returns the dialect with headers of the type typ, nil if there is none.
func DialectOfType(typ string) *Dialect {
	switch typ {
	case OMP.HeaderType:
		return OMP
	case Operator.HeaderType:
		return Operator
	}
	return nil
}

// TypeOf returns the entry type of a JSON string, TypeUnknown for other values and unknown types.
func (d *Dialect) TypeOf(v rawjson.Value) EntryType {
	if !v.IsString() {
		return TypeUnknown
	}
	t, ok := d.types[string(v[1:len(v)-1])] // mostly nothing in it is escaped
	if ok {
		return t
	}
	text, _ := v.Text()
	return d.types[text]
}

// Dialect returns the dialect of the session.
func (s *Snapshot) Dialect() *Dialect { return s.dialect }

// TimeForm returns the form for new times in the session: its last timestamp's.
func (s *Snapshot) TimeForm() rawjson.TimeForm { return s.form }

// Format is the set of facts that decide how clients write the lines of a session.
type Format struct {
	Dialect *Dialect
	Slot    bool // the file begins with a title slot, as files of omp 18 do
	Blobs   bool // large images go into blobs; otherwise they stay in the line
}

// Format returns the format of the session.
func (s *Snapshot) Format() Format { return Format{s.dialect, s.header.slot > 0, s.toBlobs} }

// Format acquires a snapshot and returns its format. Errors come from Acquire.
func (s *Session) Format(ctx context.Context) (Format, error) {
	snap, err := s.Acquire(ctx)
	if err != nil {
		return Format{}, err
	}
	defer snap.Release()
	return snap.Format(), nil
}

package agents

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// RecordTree is the index of a file with records that hang on each other by uuid and parentUuid. A fork is
// made from it.
type RecordTree struct {
	// Records are those with a uuid, in the order of the file.
	Records []TreeRecord
	// Above returns the index of a record's parent. It is ByParent at first.
	Above func(at int) (above int, ok bool)

	obj       storage.Object
	byUUID    map[string]int
	byLine    map[int64]int
	isDamaged bool // a part of the file could not be read
}

// TreeRecord is a record of a RecordTree.
type TreeRecord struct {
	UUID   string
	Parent string // uuid of its parent, "" for none
	Line   int64  // number of its line, from 1

	off, size int64
}

// AddTreeRecord adds a record with a uuid to the index in a RecordTree.
type AddTreeRecord func(t *RecordTree, r TreeRecord, members Object)

// ReadRecordTree indexes a file. Function add calls Append with the records that count. The tree reads obj later, too;
// the caller closes that.
func ReadRecordTree(obj storage.Object, add AddTreeRecord) (*RecordTree, error) {
	st, err := obj.Stat()
	if err != nil {
		return nil, err
	}
	t := &RecordTree{
		obj:    obj,
		byUUID: map[string]int{},
		byLine: map[int64]int{},
	}
	t.Above = t.ByParent
	addUnit := func(u *jsonl.Unit) error {
		t.addUnit(u, add)
		return nil
	}
	records := jsonl.Records{}
	start := jsonl.Position{}
	_, err = records.Load(context.Background(), obj, start, st.Size, addUnit)
	return t, err
}

// addUnit adds the record in a unit of the file. It ignores a record without a uuid, and notes a damaged line.
func (t *RecordTree) addUnit(u *jsonl.Unit, add AddTreeRecord) {
	if u.Kind != jsonl.ObjectUnit {
		t.isDamaged = true
		return
	}
	members := Object(u.Members)
	if len(members) == 0 {
		members = Read(u.Text)
	}
	uuid, _ := members.Member("uuid").Text()
	if uuid == "" {
		return
	}
	r := TreeRecord{
		UUID: uuid,
		Line: u.Line,
		off:  u.Off,
		size: u.Size,
	}
	r.Parent, _ = members.Member("parentUuid").Text()
	add(t, r, members)
}

// Append adds a record. Of several with one uuid the last one has the children.
func (t *RecordTree) Append(r TreeRecord) {
	t.byUUID[r.UUID] = len(t.Records)
	t.byLine[r.Line] = len(t.Records)
	t.Records = append(t.Records, r)
}

// Has reports whether there is a record with a uuid.
func (t *RecordTree) Has(uuid string) bool {
	_, ok := t.byUUID[uuid]
	return ok
}

// ByParent returns the index of the record that a record names as its parent, false if the file has none.
func (t *RecordTree) ByParent(at int) (above int, ok bool) {
	above, ok = t.byUUID[t.Records[at].Parent]
	return above, ok
}

// Path returns the records of a fork, as indexes, in order: all from the root to the last one, also those
// without an entry, and the others of the entries on the path, such as the results of parallel
// calls. The error is a ForkError if the client could not go on from them.
func (t *RecordTree) Path(request *ForkRequest) ([]int, error) {
	last, err := t.last(request)
	if err != nil {
		return nil, err
	}
	chain, err := t.ancestors(last)
	if err != nil {
		return nil, err
	}
	return t.withEntries(chain, request), nil
}

// last returns the index of the last record of a fork. The error is a ForkError if the entry has no record in this file.
func (t *RecordTree) last(request *ForkRequest) (int, error) {
	entry := request.Last()
	end := slices.Max(entry.Lines)
	at, isRecord := t.byLine[end]
	isElsewhere := entry.File != ""
	if !isRecord || isElsewhere {
		return 0, NoFork("line %d is no record that the client can go on from", end)
	}
	return at, nil
}

// ancestors returns a record and those above it, as indexes, the first one first. The error is a ForkError if a damaged
// line may be one of them, or if one of them comes twice.
func (t *RecordTree) ancestors(at int) ([]int, error) {
	chain := []int{at}
	visited := map[int]bool{at: true}
	for parent := t.Records[at].Parent; parent != ""; parent = t.Records[at].Parent {
		above, ok := t.Above(at)
		if !ok && t.isDamaged {
			return nil, NoFork("the record %s before it is not there, and a line of the file is damaged", parent)
		}
		if !ok {
			break // the client goes on from here too
		}
		if visited[above] {
			return nil, NoFork("the record %s comes after itself", parent)
		}
		visited[above] = true
		chain = append(chain, above)
		at = above
	}
	slices.Reverse(chain)
	return chain, nil
}

// withEntries returns a chain of records, with the records of the entries on the path that are not in it, such as
// the results of parallel calls.
func (t *RecordTree) withEntries(chain []int, request *ForkRequest) []int {
	isChosen := map[int]bool{}
	for _, at := range chain {
		isChosen[at] = true
	}
	var beside []int
	for _, entry := range request.Path {
		for _, line := range entry.Lines {
			at, ok := t.byLine[line]
			if ok && entry.File == "" && !isChosen[at] {
				isChosen[at] = true
				beside = append(beside, at)
			}
		}
	}
	slices.Sort(beside)
	return insertInOrder(chain, beside)
}

// insertInOrder inserts sorted indexes into a chain, each before the first part of the chain that has
// only larger ones: 4 and 8 become 1, 7, 3, 4, 6, 8 in the chain 1, 7, 3, 6.
func insertInOrder(chain, more []int) []int {
	smallest := slices.Clone(chain) // at each place, of the rest of the chain
	for i := len(smallest) - 2; i >= 0; i-- {
		smallest[i] = min(smallest[i], smallest[i+1])
	}
	out := make([]int, 0, len(chain)+len(more))
	for i, at := range chain {
		before, _ := slices.BinarySearch(more, smallest[i])
		out = append(out, more[:before]...)
		more = more[before:]
		out = append(out, at)
	}
	return append(out, more...)
}

// Read reads a record, on one line, into the memory of another one. The error is
// storage.ErrStale if the file was changed meanwhile, and a ForkError for a record that is too long.
func (t *RecordTree) Read(at int, record *Record) error {
	r := &t.Records[at]
	if r.size > MaxForkedRecord {
		return NoFork("line %d has %d bytes, at most %d can be copied", r.Line, r.size, MaxForkedRecord)
	}
	text := slices.Grow(record.Value[:0], int(r.size))
	text = text[:r.size]
	err := storage.ReadFull(t.obj, text, r.off)
	if err != nil {
		return err
	}
	if !rawjson.IsValidObject(text) {
		return fmt.Errorf("%w: line %d was changed meanwhile", storage.ErrStale, r.Line)
	}
	isOneLine := bytes.IndexByte(text, '\n') < 0 && bytes.IndexByte(text, '\r') < 0
	if !isOneLine {
		text = OneLine(&jsonl.Unit{Text: text, Loose: true})
	}
	record.Value = text
	record.Object = record.Object.Read(record.Value)
	record.Line = r.Line
	return nil
}

// ForkedFrom returns the member of a copied record with the ids of the original's session and record. A
// copy of a copy names the first record.
func ForkedFrom(record *Record, session string) rawjson.Field {
	uuid := record.Member("forkedFrom").Member("messageUuid")
	if !uuid.IsString() || uuid.Is("") {
		uuid = record.Member("uuid")
	}
	origin := `{"sessionId":` + rawjson.Quote(session) + `,"messageUuid":` + string(uuid) + `}`
	return rawjson.Field{Key: "forkedFrom", JSON: origin}
}

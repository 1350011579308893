package claude

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"sort"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// This file makes a fork: a new session file with the records on the path to one of them. The client
// resumes it like a session of its own (docs/format.md, Forks of other agents). Claude Code 2.1.332,
// 2.1.198 and 2.0.67 were driven.

// forkRecord is a record of the forked file that has a uuid.
type forkRecord struct {
	uuid, parent string
	line         int64
	off, size    int64
	isBoundary   bool
	// anchor and kept are, for a boundary, the record behind which the messages that the compaction
	// kept belong, and their uuids.
	anchor string
	kept   []string
}

// forkFile is the index of a forked file.
type forkFile struct {
	obj       storage.Object
	records   []forkRecord
	byUUID    map[string]int // the last record of a uuid
	byLine    map[int64]int
	isDamaged bool // a part of the file could not be read
}

// Fork implements agents.Forker.
func (a Format) Fork(request *agents.ForkRequest, out io.Writer) (agents.ForkPlace, error) {
	project, base := path.Split(request.Name)
	place := agents.ForkPlace{Dir: projectsDir, File: project + request.ID + ending}
	if isSubagent(base) {
		return place, agents.NoFork("a subagent's session cannot be resumed")
	}
	obj, err := a.Projects.Open(request.Name)
	if err != nil {
		return place, err
	}
	defer obj.Close()
	file, err := readForkFile(obj)
	if err != nil {
		return place, err
	}
	chosen, err := file.path(request)
	if err != nil {
		return place, err
	}
	w := forkWriter{
		file: file, out: out, id: request.ID,
		origin: strings.TrimSuffix(base, ending),
	}
	for _, at := range file.moveKept(chosen) {
		if err := w.write(&file.records[at]); err != nil {
			return place, err
		}
	}
	return place, w.writeTitle(request.Title)
}

// readForkFile indexes the records with a uuid.
func readForkFile(obj storage.Object) (*forkFile, error) {
	st, err := obj.Stat()
	if err != nil {
		return nil, err
	}
	file := &forkFile{obj: obj, byUUID: map[string]int{}, byLine: map[int64]int{}}
	_, err = jsonl.Records{}.Load(context.Background(), obj, jsonl.Position{}, st.Size, file.add)
	return file, err
}

// add adds a unit of the file to the index.
func (f *forkFile) add(u *jsonl.Unit) error {
	if u.Kind != jsonl.ObjectUnit {
		f.isDamaged = true
		return nil
	}
	members := agents.Object(u.Members)
	if len(members) == 0 {
		members = agents.Read(u.Text)
	}
	uuid, _ := members.Member("uuid").Text()
	if uuid == "" {
		return nil
	}
	r := forkRecord{uuid: uuid, line: u.Line, off: u.Off, size: u.Size}
	r.parent, _ = members.Member("parentUuid").Text()
	r.isBoundary = members.Member("subtype").Is("compact_boundary")
	if r.isBoundary {
		r.readBoundary(members)
	}
	f.byUUID[uuid] = len(f.records)
	f.byLine[u.Line] = len(f.records)
	f.records = append(f.records, r)
	return nil
}

// readBoundary reads the parent of a boundary, and the messages that its compaction kept.
func (r *forkRecord) readBoundary(members agents.Object) {
	if r.parent == "" {
		r.parent, _ = members.Member("logicalParentUuid").Text()
	}
	kept := members.Member("compactMetadata").Member("preservedMessages")
	r.anchor, _ = kept.Member("anchorUuid").Text()
	for v := range kept.Member("uuids").EachElement {
		uuid, _ := v.Text()
		r.kept = append(r.kept, uuid)
	}
}

// path returns the records of a fork, as indexes, in order: those from the root to the last one by
// parentUuid, with all that make no entry, and those of the entries on the path beside them, such as
// the results of parallel calls.
func (f *forkFile) path(request *agents.ForkRequest) ([]int, error) {
	end := slices.Max(request.Last().Lines)
	at, ok := f.byLine[end]
	if !ok || request.Last().File != "" {
		return nil, agents.NoFork("line %d is no record that the client can go on from", end)
	}
	chain, err := f.ancestors(at)
	if err != nil {
		return nil, err
	}
	isChosen := map[int]bool{}
	for _, at := range chain {
		isChosen[at] = true
	}
	var beside []int
	for _, entry := range request.Path {
		for _, line := range entry.Lines {
			at, ok := f.byLine[line]
			if ok && entry.File == "" && !isChosen[at] {
				isChosen[at] = true
				beside = append(beside, at)
			}
		}
	}
	slices.Sort(beside)
	return insertInOrder(chain, beside), nil
}

// ancestors returns a record and those above it by parentUuid, the first one first.
func (f *forkFile) ancestors(at int) ([]int, error) {
	chain := []int{at}
	visited := map[int]bool{at: true}
	for parent := f.records[at].parent; parent != ""; parent = f.records[at].parent {
		above, ok := f.above(at)
		if !ok && f.isDamaged {
			return nil, agents.NoFork("the record %s before it is not there, and a line of the file is damaged", parent)
		}
		if !ok {
			break
		}
		if visited[above] {
			return nil, agents.NoFork("the record %s comes after itself", parent)
		}
		visited[above] = true
		chain = append(chain, above)
		at = above
	}
	slices.Reverse(chain)
	return chain, nil
}

// above returns the record on which one hangs. In a fork, the messages that a compaction kept stand
// behind its summary, so a boundary that names one of them hangs on the record before it.
func (f *forkFile) above(at int) (above int, ok bool) {
	r := &f.records[at]
	above, ok = f.byUUID[r.parent]
	if ok && r.isBoundary && above > at {
		return at - 1, at > 0
	}
	return above, ok
}

// insertInOrder inserts sorted indexes into a chain, each before the first part of the chain that has
// only larger ones.
func insertInOrder(chain, more []int) []int {
	smallest := slices.Clone(chain) // of the rest of the chain
	for i := len(smallest) - 2; i >= 0; i-- {
		smallest[i] = min(smallest[i], smallest[i+1])
	}
	out := make([]int, 0, len(chain)+len(more))
	for i, at := range chain {
		n := sort.SearchInts(more, smallest[i])
		out = append(out, more[:n]...)
		more = more[n:]
		out = append(out, at)
	}
	return append(out, more...)
}

// moveKept moves the messages that the last compaction kept behind its summary, where the client
// expects them: with the summary as the last record it would send nothing of the conversation.
func (f *forkFile) moveKept(chosen []int) []int {
	before := len(chosen) - 1
	for before >= 0 && !f.records[chosen[before]].isBoundary {
		before--
	}
	if before < 0 {
		return chosen
	}
	boundary := &f.records[chosen[before]]
	isAnchor := func(at int) bool { return f.records[at].uuid == boundary.anchor }
	anchor := slices.IndexFunc(chosen, isAnchor)
	if anchor < before {
		return chosen
	}
	isKept := map[string]bool{}
	for _, uuid := range boundary.kept {
		isKept[uuid] = true
	}
	var kept, rest []int
	for _, at := range chosen[:before] {
		if isKept[f.records[at].uuid] {
			kept = append(kept, at)
		} else {
			rest = append(rest, at)
		}
	}
	return slices.Concat(rest, chosen[before:anchor+1], kept, chosen[anchor+1:])
}

// forkWriter writes the records of a fork, each of which hangs on the one before it.
type forkWriter struct {
	file   *forkFile
	out    io.Writer
	id     string // of the fork
	origin string // id of the forked session
	before string // uuid of the record written last
	buffer []byte
}

// write writes a record. It changes only the members that name the session and the record before it.
func (w *forkWriter) write(r *forkRecord) error {
	if r.size > agents.MaxForkedRecord {
		return agents.NoFork("line %d has %d bytes, at most %d can be copied", r.line, r.size, agents.MaxForkedRecord)
	}
	w.buffer = slices.Grow(w.buffer[:0], int(r.size))[:r.size]
	if err := storage.ReadFull(w.file.obj, w.buffer, r.off); err != nil {
		return err
	}
	text := rawjson.Value(w.buffer)
	if !rawjson.IsValidObject(text) {
		return fmt.Errorf("%w: line %d was changed meanwhile", storage.ErrStale, r.line)
	}
	if bytes.ContainsAny(text, "\r\n") {
		text = agents.OneLine(&jsonl.Unit{Text: text, Loose: true})
	}
	parent := "null"
	if w.before != "" && !r.isBoundary {
		parent = quoted(w.before)
	}
	copied, _ := text.Member("forkedFrom").Member("messageUuid").Text()
	if copied == "" {
		copied = r.uuid
	}
	fields := []rawjson.Field{
		{Key: "parentUuid", JSON: parent},
		{Key: "sessionId", JSON: quoted(w.id)},
		{Key: "forkedFrom", JSON: `{"sessionId":` + quoted(w.origin) + `,"messageUuid":` + quoted(copied) + `}`},
	}
	if !text.Member("entrypoint").Missing() { // the picker of sessions shows no others
		fields = append(fields, rawjson.Field{Key: "entrypoint", JSON: `"cli"`})
	}
	w.before = r.uuid
	_, err := w.out.Write(append(rawjson.SetMembers(text, fields), '\n'))
	return err
}

// writeTitle writes the record of a title that a person gave, unless it is "".
func (w *forkWriter) writeTitle(title string) error {
	if title == "" {
		return nil
	}
	_, err := fmt.Fprintf(w.out, `{"type":"custom-title","customTitle":%s,"sessionId":%s}`+"\n", quoted(title), quoted(w.id))
	return err
}

func quoted(text string) string { return string(rawjson.AppendQuoted(nil, text)) }

var _ agents.Forker = Format{}

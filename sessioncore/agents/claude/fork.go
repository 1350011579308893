package claude

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// This file makes a fork: a new session file with the records on the path to one of them. The client
// resumes it like a session of its own (docs/format.md, Forks of other agents). Claude Code 2.1.332,
// 2.1.198 and 2.0.67 were driven.

// forkFile is the index of a forked file.
type forkFile struct {
	*agents.RecordTree
	boundaries map[int]keptMessages // by their indexes in Records
}

// keptMessages are the messages that a compaction kept.
type keptMessages struct {
	anchor string // uuid of the record behind which they belong
	uuids  []string
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
	chosen, err := file.Path(request)
	if err != nil {
		return place, err
	}
	w := forkWriter{
		file: file, out: out, id: request.ID,
		origin: strings.TrimSuffix(base, ending),
	}
	for _, at := range file.moveKept(chosen) {
		if err := w.write(at); err != nil {
			return place, err
		}
	}
	return place, w.writeTitle(request.Title)
}

// readForkFile indexes the records with a uuid.
func readForkFile(obj storage.Object) (*forkFile, error) {
	file := &forkFile{boundaries: map[int]keptMessages{}}
	tree, err := agents.ReadRecordTree(obj, file.add)
	if err != nil {
		return nil, err
	}
	tree.Above = file.above
	file.RecordTree = tree
	return file, nil
}

// add adds a record to the index. A boundary hangs on the record before it in the talk.
func (f *forkFile) add(tree *agents.RecordTree, r agents.TreeRecord, members agents.Object) {
	if members.Member("subtype").Is("compact_boundary") {
		if r.Parent == "" {
			r.Parent, _ = members.Member("logicalParentUuid").Text()
		}
		f.boundaries[len(tree.Records)] = readKept(members)
	}
	tree.Append(r)
}

// readKept reads which messages the compaction of a boundary kept.
func readKept(members agents.Object) (kept keptMessages) {
	named := members.Member("compactMetadata").Member("preservedMessages")
	kept.anchor, _ = named.Member("anchorUuid").Text()
	for v := range named.Member("uuids").EachElement {
		uuid, _ := v.Text()
		kept.uuids = append(kept.uuids, uuid)
	}
	return kept
}

// above returns the record on which one hangs. In a fork, the messages that a compaction kept stand
// behind its summary, so a boundary that names one of them hangs on the record before it.
func (f *forkFile) above(at int) (above int, ok bool) {
	above, ok = f.ByParent(at)
	if ok && f.isBoundary(at) && above > at {
		return at - 1, at > 0
	}
	return above, ok
}

// isBoundary reports whether a record is a compaction's boundary.
func (f *forkFile) isBoundary(at int) bool {
	_, ok := f.boundaries[at]
	return ok
}

// moveKept moves the messages that the last compaction kept behind its summary, where the client
// expects them: with the summary as the last record it would send nothing of the conversation.
func (f *forkFile) moveKept(chosen []int) []int {
	before := len(chosen) - 1
	for before >= 0 && !f.isBoundary(chosen[before]) {
		before--
	}
	if before < 0 {
		return chosen
	}
	last := f.boundaries[chosen[before]]
	isAnchor := func(at int) bool { return f.Records[at].UUID == last.anchor }
	anchor := slices.IndexFunc(chosen, isAnchor)
	if anchor < before {
		return chosen
	}
	isKept := map[string]bool{}
	for _, uuid := range last.uuids {
		isKept[uuid] = true
	}
	var kept, rest []int
	for _, at := range chosen[:before] {
		if isKept[f.Records[at].UUID] {
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
	record agents.Record
	made   []byte // the record that was written last
}

// write writes a record. It changes only the members that name the session and the record before it.
func (w *forkWriter) write(at int) error {
	err := w.file.Read(at, &w.record)
	if err != nil {
		return err
	}
	parent := "null"
	if w.before != "" && !w.file.isBoundary(at) {
		parent = rawjson.Quote(w.before)
	}
	fields := []rawjson.Field{
		{Key: "parentUuid", JSON: parent},
		{Key: "sessionId", JSON: rawjson.Quote(w.id)},
		agents.ForkedFrom(&w.record, w.origin),
	}
	if !w.record.Member("entrypoint").Missing() { // the picker of sessions shows no others
		fields = append(fields, rawjson.Field{Key: "entrypoint", JSON: `"cli"`})
	}
	w.before = w.file.Records[at].UUID
	w.made = append(rawjson.AppendMembers(w.made[:0], w.record.Value, w.record.Object, fields), '\n')
	_, err = w.out.Write(w.made)
	return err
}

// writeTitle writes the record of a title that a person gave, unless it is "".
func (w *forkWriter) writeTitle(title string) error {
	if title == "" {
		return nil
	}
	_, err := fmt.Fprintf(w.out, `{"type":"custom-title","customTitle":%s,"sessionId":%s}`+"\n", rawjson.Quote(title), rawjson.Quote(w.id))
	return err
}

var _ agents.Forker = Format{}

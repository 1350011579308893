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

// Fork implements agents.Forker. It refuses to fork a subagent's session.
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
		file:   file,
		out:    out,
		id:     request.ID,
		origin: strings.TrimSuffix(base, ending),
	}
	for _, at := range file.moveKept(chosen) {
		err := w.write(at)
		if err != nil {
			return place, err
		}
	}
	return place, w.writeTitle(request.Title)
}

// readForkFile indexes the records with a uuid of an open file, which must stay open.
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

// above returns the parent of the record at an index. ok is false if it has none. In a fork, the
// messages that a compaction kept stand behind its summary, so a boundary that names one of them hangs on the record
// before it.
func (f *forkFile) above(at int) (above int, ok bool) {
	above, ok = f.ByParent(at)
	hangsOnLater := ok && above > at
	if hangsOnLater && f.isBoundary(at) {
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
// expects them: with the summary as the last record it would send nothing of the conversation. chosen has the indexes
// of records in the order of the fork, and stays as it is. It is returned if there is nothing to move.
func (f *forkFile) moveKept(chosen []int) []int {
	boundary := len(chosen) - 1
	for boundary >= 0 && !f.isBoundary(chosen[boundary]) {
		boundary--
	}
	if boundary < 0 {
		return chosen
	}
	last := f.boundaries[chosen[boundary]]
	isAnchor := func(at int) bool { return f.Records[at].UUID == last.anchor }
	anchor := slices.IndexFunc(chosen, isAnchor)
	if anchor < boundary { // the summary is not in the fork
		return chosen
	}
	kept, others := f.splitByUUID(chosen[:boundary], last.uuids)
	compaction := chosen[boundary : anchor+1]
	return slices.Concat(others, compaction, kept, chosen[anchor+1:])
}

// splitByUUID returns the records with one of the uuids, and the other records, both in their order.
func (f *forkFile) splitByUUID(records []int, uuids []string) (with, others []int) {
	isNamed := map[string]bool{}
	for _, uuid := range uuids {
		isNamed[uuid] = true
	}
	for _, at := range records {
		if isNamed[f.Records[at].UUID] {
			with = append(with, at)
		} else {
			others = append(others, at)
		}
	}
	return with, others
}

// forkWriter writes the records of a fork. Each one hangs on the record before it.
type forkWriter struct {
	file   *forkFile
	out    io.Writer
	id     string        // of the fork
	origin string        // id of the forked session
	before string        // uuid of the record written last
	record agents.Record // memory for the record that is read
	line   []byte        // memory for the line that is written
}

// write writes the record at an index. It changes only the members that name the session and the record before it.
func (w *forkWriter) write(at int) error {
	err := w.file.Read(at, &w.record)
	if err != nil {
		return err
	}
	parent := "null"
	if w.before != "" && !w.file.isBoundary(at) { // a boundary names the record before it as logicalParentUuid
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
	w.line = rawjson.AppendMembers(w.line[:0], w.record.Value, w.record.Object, fields)
	w.line = append(w.line, '\n')
	_, err = w.out.Write(w.line)
	return err
}

// writeTitle writes the record of a title that a person gave, unless it is "".
func (w *forkWriter) writeTitle(title string) error {
	if title == "" {
		return nil
	}
	const record = `{"type":"custom-title","customTitle":%s,"sessionId":%s}` + "\n"
	_, err := fmt.Fprintf(w.out, record, rawjson.Quote(title), rawjson.Quote(w.id))
	return err
}

var _ agents.Forker = Format{}

package qwen

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// This file makes a fork: a new session file with the records on the path to one of them, as the
// client's own /branch makes it (docs/format.md, Forks of other agents). Qwen Code 0.24.4 was driven.

// Format is the Format of Qwen Code's sessions.
type Format struct{ *agents.Projects }

var _ agents.Forker = Format{}

// ownRecords are the subtypes of records that a fork lacks. They say where the forked session comes
// from, or name states of files that the client kept for it.
var ownRecords = []string{
	"session_sources_snapshot", "parent_session", "session_source", "turn_result",
	"branch_checkpoint", "file_history_snapshot",
}

// Fork implements agents.Forker.
func (f Format) Fork(request *agents.ForkRequest, out io.Writer) (agents.ForkPlace, error) {
	project, base := path.Split(request.Name)
	file := path.Join(project, chatsDir, request.ID+ending)
	place := agents.ForkPlace{Dir: projectsDir, File: file}
	origin := sessionOf(base)
	if origin == "" {
		return place, agents.NoFork("a subagent's session cannot be resumed")
	}
	obj, err := f.Open(request.Name)
	if err != nil {
		return place, err
	}
	defer obj.Close()
	tree, err := agents.ReadRecordTree(obj, addFirst)
	if err != nil {
		return place, err
	}
	chosen, err := tree.Path(request)
	if err != nil {
		return place, err
	}
	w := forkWriter{
		out:     out,
		tree:    tree,
		request: request,
		origin:  origin,
	}
	for _, at := range chosen {
		err := w.write(at)
		if err != nil {
			return place, err
		}
	}
	return place, w.writeTitle()
}

// addFirst adds a record to the index. Of several with one uuid the client takes the first.
func addFirst(tree *agents.RecordTree, r agents.TreeRecord, _ agents.Object) {
	if !tree.Has(r.UUID) {
		tree.Append(r)
	}
}

// forkWriter writes the records of a fork. Each one is the parent of the next.
type forkWriter struct {
	out     io.Writer
	tree    *agents.RecordTree
	request *agents.ForkRequest
	origin  string        // id of the forked session
	before  string        // JSON of the uuid of the record written last, "" for none
	first   rawjson.Value // the first record
	record  agents.Record
	made    []byte // the record that was written last
}

// write writes the record at an index of the tree, unless it is of the forked session alone.
func (w *forkWriter) write(at int) error {
	err := w.tree.Read(at, &w.record)
	if err != nil {
		return err
	}
	subtype, _ := w.record.Member("subtype").Text()
	if w.record.Member("type").Is("system") && slices.Contains(ownRecords, subtype) {
		return nil
	}
	if w.first == nil {
		w.first = slices.Clone(w.record.Value)
	}
	fields := []rawjson.Field{
		{Key: "parentUuid", JSON: w.parent()},
		{Key: "sessionId", JSON: rawjson.Quote(w.request.ID)},
		agents.ForkedFrom(&w.record, w.origin),
	}
	w.before = string(w.record.Member("uuid"))
	w.made = rawjson.AppendMembers(w.made[:0], w.record.Value, w.record.Object, fields)
	w.made = append(w.made, '\n')
	_, err = w.out.Write(w.made)
	return err
}

// parent returns the JSON of the parent of the next record.
func (w *forkWriter) parent() string {
	if w.before == "" {
		return "null"
	}
	return w.before
}

// writeTitle writes the record of a title that a person gave, unless there is none.
func (w *forkWriter) writeTitle() error {
	if w.request.Title == "" {
		return nil
	}
	timestamp := w.request.Time.UTC().Format(rawjson.TimestampLayout)
	var record strings.Builder
	fmt.Fprintf(&record, `{"uuid":%s`, rawjson.Quote(agents.NewUUID()))
	fmt.Fprintf(&record, `,"parentUuid":%s`, w.parent())
	fmt.Fprintf(&record, `,"sessionId":%s`, rawjson.Quote(w.request.ID))
	fmt.Fprintf(&record, `,"timestamp":%s`, rawjson.Quote(timestamp))
	record.WriteString(`,"type":"system","subtype":"custom_title"`)
	for _, key := range []string{"cwd", "version"} { // as the client has them in each record
		value := w.first.Member(key)
		if !value.Missing() {
			fmt.Fprintf(&record, `,%q:%s`, key, value)
		}
	}
	title := rawjson.Quote(w.request.Title)
	fmt.Fprintf(&record, `,"systemPayload":{"customTitle":%s,"titleSource":"manual"}}`+"\n", title)
	_, err := io.WriteString(w.out, record.String())
	return err
}

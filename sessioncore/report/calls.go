package report

import (
	"cmp"
	"context"
	"slices"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
	"sessionfs/sessioncore/names"
)

// messageCalls has the tool calls and results of a message.
type messageCalls struct {
	entry   sessioncore.Entry
	role    string
	failed  bool // an answer that clients leave out, with the results of its calls
	calls   []call
	results []call
	// borrowed says that the session goes on from another one, which has the message and its
	// successors.
	borrowed bool
}

// call is a tool call, or the result of one.
type call struct {
	id   string // encoded as a name, so that it is not long
	tool string // for a person
	// byProvider says that the provider itself carries it out: it may have no result of its own.
	byProvider bool
}

// madeCall is a call, and the entry of the answer that made it.
type madeCall struct {
	call
	entry sessioncore.Entry
}

// openCalls has the calls of messages that wait for their results.
type openCalls struct {
	open  map[string][]madeCall // by their ids, which some providers use again
	known map[string]bool       // the ids of all calls
}

// add adds the calls of a message. Without needsResults none of them waits, but results of them may follow.
func (o *openCalls) add(m *messageCalls, needsResults bool) {
	for _, c := range m.calls {
		o.known[c.id] = true
		if needsResults && !c.byProvider {
			o.open[c.id] = append(o.open[c.id], madeCall{call: c, entry: m.entry})
		}
	}
}

// settle takes the last open call of an id for a result, if one waits. It returns false if there was never such
// a call.
func (o *openCalls) settle(id string) bool {
	last := len(o.open[id]) - 1
	if last >= 0 {
		o.open[id] = o.open[id][:last]
	}
	return o.known[id]
}

// orphans returns the tool calls without a result, and the results without a call, in the part of
// the current branch that a model is sent: many providers refuse to go on with one. Calls of the
// last answer may still run, until somebody says something after it.
func orphans(ctx context.Context, s *sessioncore.Snapshot) (list []sessioncore.Problem, err error) {
	messages, err := messagesSent(ctx, s)
	if err != nil {
		return nil, err
	}
	settled := settledUntil(messages)
	problem := func(entry sessioncore.Entry, kind sessioncore.ProblemKind, c call, lack string) {
		why := "the " + c.tool + " " + c.id + " has no " + lack + " on the current branch"
		list = append(list, s.ProblemOf(entry, kind, why))
	}
	calls := openCalls{open: map[string][]madeCall{}, known: map[string]bool{}}
	for i := range messages {
		m := &messages[i]
		goesOnElsewhere := m.borrowed && i+1 < len(messages) && !messages[i+1].borrowed
		needsResults := i < settled && !m.failed && !goesOnElsewhere
		calls.add(m, needsResults)
		for _, result := range m.results {
			if !calls.settle(result.id) {
				problem(m.entry, sessioncore.ProblemOrphanResult, result, "call")
			}
		}
	}
	for _, made := range calls.open {
		for _, c := range made {
			problem(c.entry, sessioncore.ProblemOrphanCall, c.call, "result")
		}
	}
	slices.SortFunc(list, func(a, b sessioncore.Problem) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Why, b.Why))
	})
	return list, nil
}

// settledUntil returns the number of messages before the last answer, all of them if a user's
// message follows. An answer may be several messages in a row, one for each call. Results behind it do
// not matter: others may follow.
func settledUntil(messages []messageCalls) int {
	begin := len(messages) // of the last answer, once it is found
	for i, m := range slices.Backward(messages) {
		isFound := begin < len(messages)
		switch {
		case m.role == "assistant":
			begin = i
		case isFound, m.role == "user":
			return begin
		}
	}
	return begin
}

// messagesSent reads the messages of the current branch that a model is sent, the oldest first; nil if the leaf
// is before the first entry.
func messagesSent(ctx context.Context, s *sessioncore.Snapshot) ([]messageCalls, error) {
	leaf, err := s.Leaf()
	if err != nil || leaf == sessioncore.NoEntry {
		return nil, err
	}
	path := s.Path(leaf)
	path, err = sinceCompaction(s, path)
	if err != nil {
		return nil, err
	}
	var messages []messageCalls
	reader := sessioncore.NewEntryReader(s)
	for _, e := range path {
		if s.Kind(e) != sessioncore.TypeMessage {
			continue
		}
		text, err := reader.Read(e)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		m := turnOf(s.Message(e, text))
		m.entry = e
		m.borrowed = text.Member("origin").Member("path").IsString()
		messages = append(messages, m)
	}
	return messages, nil
}

// sinceCompaction returns the end of a path that a model is sent: from the last /clear on, or from
// the turn that the last compaction keeps first.
func sinceCompaction(s *sessioncore.Snapshot, path []sessioncore.Entry) ([]sessioncore.Entry, error) {
	for i, e := range slices.Backward(path) {
		switch s.Kind(e) {
		case sessioncore.TypeResetBoundary:
			return path[i+1:], nil
		case sessioncore.TypeCompaction:
			text, err := s.EntryText(e)
			if err != nil {
				return nil, err
			}
			id, _ := text.Member(s.Dialect().KeptKey).Text()
			return path[turnBefore(s, path[:i], id):], nil
		}
	}
	return path, nil
}

// turnBefore returns the index in path of the user's message that begins the turn of the entry with an id, as
// the calls of its first results may stand before it. Without such an entry it is the end of path.
func turnBefore(s *sessioncore.Snapshot, path []sessioncore.Entry, id string) int {
	kept, err := s.Find(id)
	begin := slices.Index(path, kept)
	if err != nil || begin < 0 {
		return len(path)
	}
	for begin > 0 && s.Role(path[begin]) != sessioncore.RoleUser {
		begin--
	}
	return begin
}

// turnOf finds the calls and results of a message. Messages of other roles than the user's, the model's and a
// tool's have none.
func turnOf(text rawjson.Value) messageCalls {
	m := message.Read(text)
	stop := m[message.StopReason]
	found := messageCalls{
		role:   m.Role(),
		failed: stop.Is("aborted") || stop.Is("error") || stop.Is("deferred"),
	}
	switch found.role {
	case "toolResult": // it is one result as a whole
		found.addResult(m[message.CallID])
		return found
	case "assistant", "user":
	default:
		return found
	}
	for v := range m[message.Content].EachElement {
		block := message.Read(v)
		switch block.Kind() {
		case message.CallKind:
			found.addCall(&block)
		case message.ResultKind:
			found.addResult(block[message.CallID])
		}
	}
	return found
}

// addCall adds the call in a block, if it has an id.
func (m *messageCalls) addCall(block *message.Members) {
	id, ok := block[message.ID].Text()
	if !ok {
		return
	}
	kind, _ := block[message.Type].Text()
	tool, _ := block[message.Name].Text()
	m.calls = append(m.calls, call{
		id:         names.FileName(id),
		tool:       "call of " + names.FileName(tool),
		byProvider: rawjson.CamelCase(kind) == "serverToolUse" || message.ByProvider(tool),
	})
}

// addResult adds the result of a call, if it names the call.
func (m *messageCalls) addResult(callID rawjson.Value) {
	id, ok := callID.Text()
	if ok {
		m.results = append(m.results, call{id: names.FileName(id), tool: "result of call"})
	}
}

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

// orphans returns the tool calls without a result, and the results without a call, in the part of
// the current branch that a model is sent: many providers refuse to go on with one. Calls of the
// last answer may still run, until somebody says something after it.
func orphans(ctx context.Context, s *sessioncore.Snapshot) (list []sessioncore.Problem, err error) {
	messages, err := messagesSent(ctx, s)
	if err != nil {
		return nil, err
	}
	settled := settledUntil(messages)
	problem := func(m *messageCalls, kind sessioncore.ProblemKind, c call, lack string) {
		why := "the " + c.tool + " " + c.id + " has no " + lack + " on the current branch"
		list = append(list, s.ProblemOf(m.entry, kind, why))
	}
	type made struct {
		call
		by *messageCalls
	}
	open := map[string][]made{}
	known := map[string]bool{} // calls by their id, which some providers use again
	for i := range messages {
		m := &messages[i]
		goesOnElsewhere := m.borrowed && i+1 < len(messages) && !messages[i+1].borrowed
		needsResults := i < settled && !m.failed && !goesOnElsewhere
		for _, c := range m.calls {
			known[c.id] = true
			if needsResults && !c.byProvider {
				open[c.id] = append(open[c.id], made{c, m})
			}
		}
		for _, c := range m.results {
			last := len(open[c.id]) - 1
			switch {
			case last >= 0:
				open[c.id] = open[c.id][:last]
			case !known[c.id]:
				problem(m, sessioncore.ProblemOrphanResult, c, "call")
			}
		}
	}
	for _, calls := range open {
		for _, c := range calls {
			problem(c.by, sessioncore.ProblemOrphanCall, c.call, "result")
		}
	}
	slices.SortFunc(list, func(a, b sessioncore.Problem) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Why, b.Why))
	})
	return list, nil
}

// settledUntil returns the number of messages before the last answer, all of them if a user's
// message follows. An answer may be several messages, one for each call.
func settledUntil(messages []messageCalls) int {
	last := len(messages)
	for i, m := range slices.Backward(messages) {
		switch {
		case m.role == "user" && last == len(messages):
			return last
		case m.role == "assistant":
			last = i
		case last < len(messages):
			return last
		}
	}
	return last
}

// messagesSent reads the messages of the current branch that a model is sent.
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
			kept, err := s.Find(id)
			if err == nil && slices.Contains(path[:i], kept) {
				i = slices.Index(path, kept)
				for i > 0 && s.Role(path[i]) != sessioncore.RoleUser { // where the calls of the first results are
					i--
				}
			}
			return path[i:], nil
		}
	}
	return path, nil
}

// turnOf finds the calls and results of a message.
func turnOf(text rawjson.Value) messageCalls {
	m := message.Read(text)
	stop := m[message.StopReason]
	found := messageCalls{
		role:   m.Role(),
		failed: stop.Is("aborted") || stop.Is("error") || stop.Is("deferred"),
	}
	switch found.role {
	case "toolResult":
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

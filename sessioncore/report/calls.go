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

// turn is what a message has of tool calls.
type turn struct {
	entry   sessioncore.Entry
	role    string
	failed  bool // an answer that clients leave out, with the results of its calls
	calls   []call
	results []call
	// borrowed says that the session goes on from another one, which has the message and its successors.
	borrowed bool
}

// call is a tool call, or the result of one.
type call struct {
	id   string // encoded as a name, so that it is not long
	tool string // for a person
	// byProvider says that the provider itself carries it out: it may have no result of its own.
	byProvider bool
}

// orphans returns the tool calls without a result, and the results without a call, in what a model is sent of the current
// branch: with such a one many providers refuse to go on. Calls of the last answer may still run, as long as nobody said
// anything after it.
func orphans(ctx context.Context, s *sessioncore.Snapshot) (list []sessioncore.Problem, err error) {
	messages, err := messagesSent(ctx, s)
	if err != nil {
		return nil, err
	}
	settled := settledUntil(messages)
	problem := func(m *turn, kind sessioncore.ProblemKind, c call, why string) {
		list = append(list, s.ProblemOf(m.entry, kind, "the "+c.tool+" "+c.id+" has no "+why+" on the current branch"))
	}
	type made struct {
		call
		by *turn
	}
	open, known := map[string][]made{}, map[string]bool{} // calls by their id, which some providers use again
	for i := range messages {
		m := &messages[i]
		goesOnElsewhere := m.borrowed && i+1 < len(messages) && !messages[i+1].borrowed
		for _, c := range m.calls {
			known[c.id] = true
			if !m.failed && !c.byProvider && !goesOnElsewhere && i < settled {
				open[c.id] = append(open[c.id], made{c, m})
			}
		}
		for _, c := range m.results {
			if last := len(open[c.id]) - 1; last >= 0 {
				open[c.id] = open[c.id][:last]
			} else if !known[c.id] {
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

// settledUntil returns the number of messages before the last answer, all of them if a user's message follows that. An answer
// may be several messages, one for each call.
func settledUntil(messages []turn) int {
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

// messagesSent reads the messages of the current branch from the last compaction on, with what that keeps.
func messagesSent(ctx context.Context, s *sessioncore.Snapshot) ([]turn, error) {
	leaf, err := s.Leaf()
	if err != nil || leaf == sessioncore.NoEntry {
		return nil, err
	}
	path := s.Path(leaf)
	if path, err = sinceCompaction(s, path); err != nil {
		return nil, err
	}
	path = slices.DeleteFunc(path, func(e sessioncore.Entry) bool { return s.Kind(e) != sessioncore.TypeMessage })
	messages := make([]turn, len(path))
	err = s.ReadEntries(ctx, path, func() func(int, rawjson.Value) error {
		return func(i int, text rawjson.Value) error {
			messages[i] = turnOf(s.Message(path[i], text))
			messages[i].entry, messages[i].borrowed = path[i], text.Member("origin").Member("path").IsString()
			return nil
		}
	})
	return messages, err
}

// sinceCompaction returns the end of a path that the model is sent: what follows the last compaction or /clear, and what the
// compaction keeps, from the beginning of a turn on.
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
			if kept, err := s.Find(id); err == nil && slices.Contains(path[:i], kept) {
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
func turnOf(text rawjson.Value) turn {
	m := message.Read(text)
	stop := m[message.StopReason]
	found := turn{role: m.Role(), failed: stop.Is("aborted") || stop.Is("error") || stop.Is("deferred")}
	if id, ok := m[message.CallID].Text(); ok && found.role == "toolResult" {
		found.results = append(found.results, call{id: names.FileName(id), tool: "result of call"})
	}
	if found.role != "assistant" && found.role != "user" {
		return found
	}
	for v := range m[message.Content].EachElement {
		b := message.Read(v)
		kind, _ := b[message.Type].Text()
		switch id, hasID := b[message.ID].Text(); b.Kind() {
		case message.CallKind:
			name, _ := b[message.Name].Text()
			if hasID {
				byProvider := rawjson.CamelCase(kind) == "serverToolUse" || message.ByProvider(name)
				found.calls = append(found.calls, call{names.FileName(id), "call of " + names.FileName(name), byProvider})
			}
		case message.ResultKind:
			if id, ok := b[message.CallID].Text(); ok {
				found.results = append(found.results, call{id: names.FileName(id), tool: "result of call"})
			}
		}
	}
	return found
}

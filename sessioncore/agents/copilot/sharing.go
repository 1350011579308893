package copilot

import (
	"bytes"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// sharing shares out the events of a file to subagents. Each gets its own events, the first one of
// the file, the images that its messages name, and the event that tells which subagent its call began.
type sharing struct {
	callers callers
	began   map[string]agents.RecordPlace // the events that tell the subagents of calls, by call
	assets  map[string]agents.RecordPlace // the last event with an image, by asset
	given   map[gift]agents.RecordPlace   // the last one of these that a subagent has
	start   *agents.RecordPlace           // the first event of the file
	started map[string]bool               // the subagents that have it
	uses    map[string]int                // how often subagents named an asset
}

// gift is an earlier event that a subagent needs: an image, or the begin of a call.
type gift struct {
	agent, name string
	isImage     bool
}

// maxStart bounds the first event, as each subagent gets it. It has some hundred bytes.
const maxStart = 4 << 10

// newSharing returns a function for the events of a file.
func newSharing() func(*agents.Record, agents.RecordPlace, agents.Give) {
	s := &sharing{
		callers: callers{},
		began:   map[string]agents.RecordPlace{},
		assets:  map[string]agents.RecordPlace{},
		given:   map[gift]agents.RecordPlace{},
		uses:    map[string]int{},
		started: map[string]bool{},
	}
	return s.event
}

// event shares out an event, and notes those that a later one may need.
func (s *sharing) event(r *agents.Record, at agents.RecordPlace, give agents.Give) {
	agent, call := s.agentOf(r, at)
	typ, _ := r.Member("type").Text()
	switch typ {
	case "session.start":
		if s.start == nil && len(r.Value) <= maxStart {
			s.start = &at
		}
		return // it belongs to the session itself
	case "session.binary_asset":
		asset, _ := r.Inner.Member("assetId").Text()
		s.assets[asset] = at
		s.uses[asset] = 0
		return
	}
	if !agents.IsSubagent(agent) {
		return
	}
	if !s.started[agent] && s.start != nil {
		give(agent, *s.start)
	}
	s.started[agent] = true
	if bytes.Contains(r.Value, []byte(`"assetId"`)) {
		s.images(agent, r.Inner, give)
	}
	began, hasBegun := s.began[call]
	isResult := typ == "tool.execution_complete"
	isOfOther := s.callers[call] != agent // the result names the session of another subagent
	if hasBegun && isOfOther && isResult {
		s.giveEarlier(gift{agent: agent, name: call}, began, give)
	}
	give(agent, at)
}

// agentOf returns the subagent that has an event, and the call in it. It notes the first event that
// tells which subagent a call began.
func (s *sharing) agentOf(r *agents.Record, at agents.RecordPlace) (agent, call string) {
	call, _ = r.Inner.Member("toolCallId").Text()
	parent, _ := r.Inner.Member("parentToolCallId").Text()
	if r.Member("type").Is("subagent.started") {
		parent = call
	}
	before := s.callers[parent]
	agent = s.callers.of(r.Object, r.Inner)
	if s.callers[parent] != before {
		s.began[parent] = at
	}
	return agent, call
}

// giveEarlier gives a subagent the earlier event at a place, unless it has that.
func (s *sharing) giveEarlier(g gift, at agents.RecordPlace, give agents.Give) {
	if s.given[g] != at {
		s.given[g] = at
		give(g.agent, at)
	}
}

// images gives a subagent the images that one of its events names.
func (s *sharing) images(agent string, data agents.Object, give agents.Give) {
	result := data.Member("result")
	lists := [...]rawjson.Value{
		data.Member("attachments"),
		result.Member("binaryResultsForLlm"),
		result.Member("contents"),
	}
	for _, list := range lists {
		for part := range list.EachElement {
			asset, _ := part.Member("assetId").Text()
			at, ok := s.assets[asset]
			if ok && s.uses[asset] < maxUses {
				s.uses[asset]++
				s.giveEarlier(gift{agent: agent, name: asset, isImage: true}, at, give)
			}
		}
	}
}

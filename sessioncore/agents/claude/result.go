package claude

import (
	"sessionfs/sessioncore/agents"
)

// result makes the entry of a result in a record that hangs on a place, and returns the place for the next entry. The
// record's details belong to its only result. If the client sends another text instead, that is the result, and an
// entry with the content of its own follows it.
func (c *converter) result(r *record, result agents.Object, isOnly bool, on *branchPoint) *branchPoint {
	place := c.resultPlace(r, result, isOnly, on)
	content := result.Member("content")
	replacement := c.replacement(result)
	sent := content
	if replacement != nil {
		sent = replacement
	}
	e := agents.ToolResult{
		Call:    result.Member("tool_use_id"),
		IsError: result.Member("is_error").IsTrue(),
		Session: c.subagent(r, result),
		Content: c.blocksOf(sent),
	}
	if isOnly {
		e.Details = r.Member("toolUseResult")
	}
	c.HangOn(place.id, 0)
	c.Result(e)
	c.noteResult(r, place)
	if replacement != nil && (content.IsString() || content.IsArray()) {
		c.Full(output, c.blocksOf(content))
		c.noteResult(r, place)
	}
	return place
}

// noteResult makes the entry made last, of a record, the end of a place.
func (c *converter) noteResult(r *record, place *branchPoint) {
	c.noteLast(r.time(), place.id, place)
	place.id = c.Last()
}

// resultPlace returns the place of a result in a record that hangs on another place: after the answer with its call
// and the results so far, or at the end of the file if the conversation has continued there. A record with only the
// result of a removed call is removed, too.
func (c *converter) resultPlace(r *record, result agents.Object, isOnly bool, on *branchPoint) *branchPoint {
	id, _ := result.Member("tool_use_id").Text()
	call, isKnown := c.calls[id]
	if call.removed && isOnly {
		c.remove(r.uuid, r.line)
	}
	switch {
	case !isKnown:
		on.extended = true
		return &branchPoint{id: on.id, first: on.first, up: on}
	case call.place.extended:
		return c.end
	}
	isOpen := c.Open() != nil && c.answer.place == call.place
	if isOpen {
		c.answer.answered = true
	}
	return call.place
}

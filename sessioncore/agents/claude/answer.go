package claude

import (
	"bytes"
	"slices"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// maxAnswer bounds an answer, in bytes. The rest becomes another entry.
const maxAnswer = 32 << 20

// maxParents is how many records of an answer, the last ones, may be the parent of its next one.
const maxParents = 256

// answer is one answer of the model. The client writes a record for each block of it, all with the
// id of the message and with the answer's usage.
type answer struct {
	*agents.Answer
	place   *branchPoint
	key     string // the ids of message and request or, of several answers, of the record
	removed bool   // it is not sent any more
	usage   []byte // of the last record that has one
	total   int64  // the tokens of its largest usage

	id, request string   // of the message, and of the request that it answers
	records     []string // the uuids of its records
	answered    bool     // a call of it has a result
}

// isOver reports whether a record with the message's id is another answer. An id may serve several
// answers in a row with other entries between them.
func (c *converter) isOver(a *answer, r *record, request string) bool {
	if !a.isOther(r, request) {
		return false
	}
	if c.Skips() {
		c.needWhole()
	}
	return a.answered || a.place.extended
}

// isOther reports whether a record with the message's id is another answer if there are other entries between
// them. Those stand between the records of an answer too: these name one request or, without one, hang on one
// another or have the same prompt tokens.
func (a *answer) isOther(r *record, request string) bool {
	if request != "" && a.request != "" {
		return request != a.request
	}
	usage := r.message.Member("usage")
	last := a.records[max(0, len(a.records)-maxParents):]
	return (r.follows || !slices.Contains(last, r.parent)) &&
		usage.IsObject() && promptOf(usage) != promptOf(a.usage)
}

// promptOf returns the tokens of the prompt.
func promptOf(usage rawjson.Value) int64 {
	u, _ := usageOf(usage)
	return u.Input + u.CacheRead + u.CacheWrite
}

// assistant adds a record to its answer, or begins another one.
func (c *converter) assistant(r *record) {
	id, _ := r.message.Member("id").Text()
	request, _ := r.Member("requestId").Text()
	a := &c.answer
	key := id
	if c.Open() != nil && id != "" && a.id == id && a.removed == c.isRemoved(r) && a.Size() < maxAnswer {
		if !c.isOver(a, r, request) {
			c.extend(a, r)
			return
		}
		if request == "" {
			key += " " + r.id()
		}
	}
	if id != "" && request != "" {
		key += " " + request
	}
	if !c.hasContent(r.message) {
		c.pass(r)
		return
	}
	c.send()
	c.Close()
	parent := c.parentOf(r)
	c.hangOn(parent)
	*a = answer{
		place: &branchPoint{id: r.id(), first: r.id(), up: parent}, key: key, removed: c.isRemoved(r),
		id: id, request: request, records: a.records[:0], usage: a.usage[:0],
	}
	c.extend(a, r)
	a.Answer.Cost(c.cost)
	c.cost = c.cost[:0]
	c.noteLast(r.time(), parent.id, a.place)
}

// extend adds a record to an answer.
func (c *converter) extend(a *answer, r *record) {
	c.From(r.id(), r.time())
	a.Answer = c.Answer(a.key)
	c.setPlace(r, a.place, a.ID)
	c.leaf.pinned = false
	c.leaf.cleared = false
	a.records = append(a.records, r.uuid)
	if c.Skips() {
		c.checkCalls(r.message.Member("content"))
	} else {
		c.addBlocks(a, r.message.Member("content"))
	}
	a.Model(r.message.Member("model"))
	a.Stop(stopReason(r.message.Member("stop_reason")))
	if text := r.Member("error"); text.IsString() {
		a.Error(text)
	} else if r.Member("isApiErrorMessage").IsTrue() || !text.Missing() {
		a.Error(rawjson.AppendQuoted(nil, agents.ChatText(r.message.Member("content"))))
	}
	status := r.Member("apiErrorStatus")
	if !status.IsNumber() {
		status = nil
	}
	a.Response(r.message.Member("id"), status, r.time())
	c.count(a, r.message.Member("usage"), r.message.Member("model"))
}

// hasContent reports whether a record has a non-empty block, or tokens.
func (c *converter) hasContent(message agents.Object) (has bool) {
	content := message.Member("content")
	content.EachObject(c.ofBlock, func(block rawjson.Value, members []rawjson.Member) bool {
		has = block.IsObject() && !isEmptyText(members)
		return !has
	})
	if has || content.IsString() && !content.Is("") {
		return true
	}
	u, _ := usageOf(message.Member("usage"))
	return u.Total > 0
}

// addBlocks adds the blocks of a record, and notes its calls.
func (c *converter) addBlocks(a *answer, content rawjson.Value) {
	if content.IsString() {
		a.Text(content)
	}
	if c.Facts && !bytes.Contains(content, []byte("tool_use")) {
		return
	}
	content.EachObject(c.ofBlock, func(block rawjson.Value, of []rawjson.Member) bool {
		members := agents.Object(of)
		typ := members.Member("type")
		switch {
		case isEmptyText(members):
		case typ.Is("tool_use"), typ.Is("server_tool_use"):
			id, _ := members.Member("id").Text()
			c.calls[id] = answerCall{c.prompt(members), a.place, a.removed}
			a.Call(members.Member("id"), members.Member("name"), members.Member("input"))
		case typ.Is("thinking"):
			a.Thinking(members.Member("thinking"), members.Member("signature"))
		case typ.Is("redacted_thinking"):
			redacted := agents.AppendMember([]byte(`{"type":"redactedThinking"`), "data", members.Member("data"))
			a.Other(append(redacted, '}'))
		case !c.Facts:
			var blocks agents.Blocks
			addBlock(&blocks, block, members)
			a.Add(blocks)
		}
		return true
	})
}

// stopReason returns the reason for an answer's end in a session's words, "" for the usual one.
func stopReason(v rawjson.Value) string {
	switch {
	case v.Missing():
		return ""
	case v.Is("end_turn"), v.Is("stop_sequence"), v.Is("pause_turn"):
		return "stop"
	case v.Is("tool_use"):
		return "toolUse"
	case v.Is("max_tokens"):
		return "length"
	}
	return "error"
}

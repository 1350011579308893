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
	key     string // the ids of message and request or, of several answers of one message id, of the record
	removed bool   // it is not sent any more
	usage   []byte // of the last record that has one
	total   int64  // the tokens of its largest usage

	id       string   // of the message; "" if no record may be added
	request  string   // the id of the request that it answers, or ""
	records  []string // the uuids of its records
	answered bool     // a call of it has a result
}

// isOver reports whether a record with the id of the open answer's message begins another answer. An id may serve
// several answers in a row with other entries between them. A bill that skips lines is read again with all lines if
// it depends on these entries.
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
	last := a.records[max(0, len(a.records)-maxParents):]
	hangsOnAnswer := !r.follows && slices.Contains(last, r.parent)
	usage := r.message.Member("usage")
	if hangsOnAnswer || !usage.IsObject() {
		return false
	}
	return promptTokens(usage) != promptTokens(a.usage)
}

// promptTokens returns the tokens of the prompt that a usage tells, 0 for no usage.
func promptTokens(usage rawjson.Value) int64 {
	u, _ := usageOf(usage)
	return u.Input + u.CacheRead + u.CacheWrite
}

// assistant adds a record to its answer, or begins another one. A record without content and tokens makes none.
func (c *converter) assistant(r *record) {
	id, _ := r.message.Member("id").Text()
	request, _ := r.Member("requestId").Text()
	key := id
	if c.isOfAnswer(r, id) {
		a := &c.answer
		if !c.isOver(a, r, request) {
			c.extend(a, r)
			return
		}
		if request == "" { // the id alone is the key of the answer before
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
	c.beginAnswer(r, answer{
		key:     key,
		id:      id,
		request: request,
	})
}

// isOfAnswer reports whether a record has the message id of the open answer, and may be added to that.
func (c *converter) isOfAnswer(r *record, id string) bool {
	a := &c.answer
	if c.Open() == nil || id == "" || a.id != id {
		return false
	}
	return a.removed == c.isRemoved(r) && a.Size() < maxAnswer
}

// beginAnswer closes the open answer, and opens another one, a, with its first record. a has the key and the ids; the
// other fields are set here, in the memory of the answer before.
func (c *converter) beginAnswer(r *record, a answer) {
	c.send() // before the parent is looked up, as the prompts may become that
	c.Close()
	parent := c.parentOf(r)
	c.hangOn(parent)
	a.place = &branchPoint{id: r.id(), first: r.id(), up: parent}
	a.removed = c.isRemoved(r)
	a.records = c.answer.records[:0]
	a.usage = c.answer.usage[:0]
	c.answer = a
	c.extend(&c.answer, r)
	c.answer.Answer.Cost(c.cost) // recorded while none was open
	c.cost = c.cost[:0]
	c.noteLast(r.time(), parent.id, a.place)
}

// extend adds a record to the open answer.
func (c *converter) extend(a *answer, r *record) {
	content := r.message.Member("content")
	model := r.message.Member("model")
	c.From(r.id(), r.time())
	a.Answer = c.Answer(a.key)
	c.setPlace(r, a.place, a.ID)
	c.leaf.pinned = false
	c.leaf.cleared = false
	a.records = append(a.records, r.uuid)
	if c.Skips() {
		c.checkCalls(content)
	} else {
		c.addBlocks(a, content)
	}
	a.Model(model)
	a.Stop(stopReason(r.message.Member("stop_reason")))
	a.addError(r)
	status := r.Member("apiErrorStatus")
	if !status.IsNumber() {
		status = nil
	}
	a.Response(r.message.Member("id"), status, r.time())
	c.count(a, r.message.Member("usage"), model)
}

// addError ends the answer with the error of a record, if it has one: its text is the member error, else the content.
func (a *answer) addError(r *record) {
	failure := r.Member("error")
	switch {
	case failure.IsString():
		a.Error(failure)
	case r.Member("isApiErrorMessage").IsTrue() || !failure.Missing():
		text := agents.ChatText(r.message.Member("content"))
		a.Error(rawjson.AppendQuoted(nil, text))
	}
}

// hasContent reports whether a record has a non-empty block, or tokens.
func (c *converter) hasContent(message agents.Object) (has bool) {
	content := message.Member("content")
	if content.IsString() && !content.Is("") {
		return true
	}
	content.EachObject(c.ofBlock, func(block rawjson.Value, members []rawjson.Member) bool {
		has = block.IsObject() && !isEmptyText(members)
		return !has
	})
	if has {
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
	if c.Facts && !bytes.Contains(content, []byte("tool_use")) { // of the blocks, a bill needs calls alone
		return
	}
	content.EachObject(c.ofBlock, func(block rawjson.Value, of []rawjson.Member) bool {
		members := agents.Object(of)
		if !isEmptyText(members) {
			c.addAnswerBlock(a, block, members)
		}
		return true
	})
}

// addAnswerBlock adds a block, with its members, to an answer.
func (c *converter) addAnswerBlock(a *answer, block rawjson.Value, members agents.Object) {
	typ := members.Member("type")
	switch {
	case typ.Is("tool_use"), typ.Is("server_tool_use"):
		id, _ := members.Member("id").Text()
		c.calls[id] = answerCall{
			prompt:  c.promptHash(members),
			place:   a.place,
			removed: a.removed,
		}
		a.Call(members.Member("id"), members.Member("name"), members.Member("input"))
	case typ.Is("thinking"):
		a.Thinking(members.Member("thinking"), members.Member("signature"))
	case typ.Is("redacted_thinking"):
		redacted := []byte(`{"type":"redactedThinking"`)
		redacted = agents.AppendMember(redacted, "data", members.Member("data"))
		a.Other(append(redacted, '}'))
	case !c.Facts:
		var blocks agents.Blocks
		addBlock(&blocks, block, members)
		a.Add(blocks)
	}
}

// stopReason returns the reason for an answer's end in a session's words, "" if the record names none. A reason that
// is not known is an error.
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

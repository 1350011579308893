package claude

import (
	"bytes"
	"slices"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// maxAfter bounds the entries behind an open answer, in bytes. Its records come one after the
// other, with results of its calls between them.
const maxAfter = 8 << 20

// maxAnswer bounds an answer, in bytes. The rest becomes another entry.
const maxAnswer = 32 << 20

var provider = agents.Provider{API: "anthropic-messages", Name: "anthropic", Model: "unknown"}

// answer is one answer of the model. The client writes a record for each block of it, all with the
// id of the message and with the answer's usage.
type answer struct {
	agents.Entry
	place   *place
	key     string // the id of the message, and of the record if several answers have it
	removed bool   // it is not sent any more
	blocks  []byte // JSON values with commas between them
	hasCall bool
	members []byte // other members of the message, from the last record
	spent   spent  // of the last record
	cost    []byte // the member with the session's cost until then
	after   []byte // entries behind it

	id, request string   // of the message, and of the request that it answers
	records     []string // the uuids of its records
	prompt      int64    // the tokens of the prompt, if no request is named
	answered    bool     // a call of it has a result
}

// isOver reports whether a record with the message's id is another answer. An id may serve several
// answers in a row with results between them, but results stand between an answer's records too:
// these name one request or, without one, hang on one another or have the same prompt tokens.
func (a *answer) isOver(r *record, request string, usage rawjson.Value) bool {
	switch {
	case !a.answered:
		return false
	case request != "" && a.request != "":
		return request != a.request
	}
	return (r.follows || !slices.Contains(a.records, r.parent)) && usage.IsObject() && promptOf(usage) != a.prompt
}

// promptOf returns the tokens of the prompt.
func promptOf(usage rawjson.Value) int64 {
	u, _ := usageOf(usage)
	return u.Input + u.CacheRead + u.CacheWrite
}

// assistant adds a record to its answer, or begins another one.
func (c *converter) assistant(out []byte, r *record) []byte {
	message := r.message
	id, _ := message.Member("id").Text()
	request, _ := r.Member("requestId").Text()
	key := id
	if a := c.open; a != nil && id != "" && a.id == id && a.removed == c.isRemoved(r) && len(a.blocks) < maxAnswer {
		if !a.isOver(r, request, message.Member("usage")) {
			c.add(a, r, message)
			return out
		}
		key += " " + r.id()
	}
	if !c.hasContent(message) {
		c.pass(r)
		return out
	}
	out = c.flush(c.send(out))
	if c.closed[key] {
		learn(c.learned, c.learned.last, key, r.line)
	}
	parent := c.parentOf(r)
	parent.extended = true
	a := &answer{
		Entry: agents.Entry{Type: "message", ID: r.id(), Parent: parent.id, Time: slices.Clone(r.time())},
		place: &place{id: r.id(), first: r.id(), up: parent}, key: key, removed: c.isRemoved(r),
		id: id, request: request,
	}
	if request == "" {
		a.prompt = promptOf(message.Member("usage"))
	}
	if s := c.recycled; s != nil {
		a.blocks, a.members, a.after, c.recycled = reuse(s.blocks), reuse(s.members), reuse(s.after), nil
		a.records, a.spent = s.records[:0], s.spent.empty()
	}
	a.cost, c.cost = c.cost, nil
	c.add(a, r, message)
	c.noteLast(&a.Entry, a.place)
	c.open = a
	return out
}

// add adds a record to an answer.
func (c *converter) add(a *answer, r *record, message agents.Object) {
	c.at(r, a.place, a.ID)
	c.leaf.pinned, c.leaf.cleared = false, false
	a.Lines = append(a.Lines, r.line)
	a.records = append(a.records, r.uuid)
	c.addBlocks(a, message.Member("content"))
	a.members = c.members(a, r, message)
	usage := message.Member("usage")
	if a.Lines[0] < c.learned.last[a.key] || c.path != "" { // it is of the whole answer, and counted with the last part
		usage = nil
	}
	a.spent.set(usage, message.Member("model"), r.time())
}

// isError reports whether a record has an error in the place of an answer.
func isError(r *record) bool {
	return isTrue(r.Member("isApiErrorMessage")) || !r.Member("error").Missing()
}

// hasContent reports whether a record has a block that is not empty.
func (c *converter) hasContent(message agents.Object) (has bool) {
	content := message.Member("content")
	content.EachObject(c.ofBlock, func(block rawjson.Value, members []rawjson.Member) bool {
		has = block.IsObject() && !isEmptyText(members)
		return !has
	})
	return has || content.IsString() && !content.Is("")
}

// addBlocks adds the blocks of a record, and remembers its calls.
func (c *converter) addBlocks(a *answer, content rawjson.Value) {
	if content.IsString() && !content.Is("") && !c.Facts {
		a.separate()
		a.blocks = append(append(append(a.blocks, `{"type":"text","text":`...), content...), '}')
	}
	if c.Facts && !bytes.Contains(content, []byte("tool_use")) {
		return
	}
	content.EachObject(c.ofBlock, func(block rawjson.Value, of []rawjson.Member) bool {
		members := agents.Object(of)
		if !block.IsObject() || isEmptyText(members) {
			return true
		}
		if name := members.Member("name"); name.IsString() {
			id, _ := members.Member("id").Text()
			c.calls[id], a.hasCall = call{slices.Clone(name), c.prompt(members), a.place}, true
		}
		if !c.Facts {
			a.separate()
			a.blocks = appendAnswerBlock(a.blocks, block, members)
		}
		return true
	})
}

func (a *answer) separate() {
	if len(a.blocks) > 0 {
		a.blocks = append(a.blocks, ',')
	}
}

// appendAnswerBlock appends a block of an answer in a session's words. Others are unchanged.
func appendAnswerBlock(dst []byte, text rawjson.Value, block agents.Object) []byte {
	typ := block.Member("type")
	switch {
	case typ.Is("thinking"):
		dst = agents.AppendMember(append(dst, `{"type":"thinking"`...), "thinking", block.Member("thinking"))
		return append(agents.AppendMember(dst, "thinkingSignature", block.Member("signature")), '}')
	case typ.Is("redacted_thinking"):
		dst = append(dst, `{"type":"redactedThinking"`...)
		return append(agents.AppendMember(dst, "data", block.Member("data")), '}')
	case typ.Is("tool_use"), typ.Is("server_tool_use"):
		dst = agents.AppendMember(append(dst, `{"type":"toolCall"`...), "id", block.Member("id"))
		dst = agents.AppendMember(dst, "name", block.Member("name"))
		if input := block.Member("input"); input.IsObject() {
			return append(agents.AppendMember(dst, "arguments", input), '}')
		}
		return append(dst, `,"arguments":{}}`...)
	}
	return append(dst, text...)
}

// members returns the members of an answer's message that its last record decides.
func (c *converter) members(a *answer, r *record, message agents.Object) []byte {
	dst := a.members[:0]
	reason := stopReason(message.Member("stop_reason"), a.hasCall)
	if isError(r) {
		reason = "error"
	}
	dst = append(append(append(dst, `,"stopReason":"`...), reason...), '"')
	dst = agents.AppendMember(dst, "responseId", message.Member("id"))
	if text := r.Member("error"); text.IsString() {
		dst = agents.AppendMember(dst, "errorMessage", text)
	} else if isError(r) {
		dst = rawjson.AppendQuoted(append(dst, `,"errorMessage":`...), agents.ChatText(message.Member("content")))
	}
	if status := r.Member("apiErrorStatus"); status.IsNumber() {
		dst = agents.AppendMember(dst, "errorStatus", status)
	}
	return agents.AppendMillis(dst, r.time())
}

// stopReason returns the reason for an answer's end in a session's words. It is missing until then.
func stopReason(v rawjson.Value, calls bool) string {
	switch {
	case v.Missing() && calls:
		return "toolUse"
	case v.Missing(), v.Is("end_turn"), v.Is("stop_sequence"), v.Is("pause_turn"):
		return "stop"
	case v.Is("tool_use"):
		return "toolUse"
	case v.Is("max_tokens"):
		return "length"
	}
	return "error"
}

// flush appends the open answer and the entries behind it.
func (c *converter) flush(out []byte) []byte {
	if c.open == nil {
		return out
	}
	out = c.open.appendTo(out, &c.body)
	if c.open.key != "" {
		c.closed[c.open.key] = true
	}
	c.open, c.recycled = nil, c.open
	return out
}

// appendTo appends an answer and the entries behind it, using memory.
func (a *answer) appendTo(out []byte, memory *[]byte) []byte {
	body := a.spent.appendTo(provider.AppendAnswer(*memory, a.blocks, a.spent.model), a.Time, a.cost)
	a.Body = append(append(body, a.members...), '}')
	out = append(a.AppendTo(out), a.after...)
	*memory, a.Body = reuse(a.Body), nil
	return out
}

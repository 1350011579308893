package claude

import (
	"bytes"
	"slices"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage/foreign"
)

// maxAfter is how many bytes of entries wait behind an answer for the rest of it. Its records come one after the other, with
// results of its calls between them.
const maxAfter = 8 << 20

// maxAnswer is how many bytes of an answer are held. What is more becomes another entry.
const maxAnswer = 32 << 20

// answer is what the model said at once. The client writes a record for each block of it, all with the id of the message,
// and each with all of its usage.
type answer struct {
	foreign.Entry
	place   *place
	key     string // the id of the message, with that of the record where several answers have it
	removed bool   // it is not sent any more
	blocks  []byte // JSON, with commas between them
	calls   bool
	members []byte // of the message, besides role, content and usage: those of the last record
	spent   spent  // by the last record
	cost    []byte // the member with the session's cost by then
	after   []byte // entries that follow it

	id, request string   // of the message, and of the request that it answers
	records     []string // the uuids of its records
	prompt      int64    // the tokens that it was given, where no request is named
	answered    bool     // a call of it has a result
}

// isOver reports whether a record with the message's id is another answer: one id may serve several in a row, with results
// between them. Results stand between the records of one answer too. These name one request; where the client names none,
// they hang on one another or were given the same tokens.
func (a *answer) isOver(r *record, request string, usage rawjson.Value) bool {
	switch {
	case !a.answered:
		return false
	case request != "" && a.request != "":
		return request != a.request
	}
	return (r.follows || !slices.Contains(a.records, r.parent)) && usage.IsObject() && promptOf(usage) != a.prompt
}

// promptOf returns the tokens that the model was given.
func promptOf(usage rawjson.Value) int64 {
	u, _ := usageOf(usage)
	return u.Input + u.CacheRead + u.CacheWrite
}

// assistant adds a record to the answer that it belongs to, or begins another one.
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
	parent.taken = true
	a := &answer{
		Entry: foreign.Entry{Type: "message", ID: r.id(), Parent: parent.id, Time: slices.Clone(r.time())},
		place: &place{id: r.id(), first: r.id(), up: parent}, key: key, removed: c.isRemoved(r),
		id: id, request: request,
	}
	if request == "" {
		a.prompt = promptOf(message.Member("usage"))
	}
	if s := c.spare; s != nil {
		a.blocks, a.members, a.after, c.spare = reuse(s.blocks), reuse(s.members), reuse(s.after), nil
		a.records, a.spent = s.records[:0], s.spent.empty()
	}
	a.cost, c.cost = c.cost, nil
	c.add(a, r, message)
	c.made(&a.Entry, a.place)
	c.open = a
	return out
}

// add adds a record to an answer.
func (c *converter) add(a *answer, r *record, message foreign.Object) {
	c.at(r, a.place, a.ID)
	c.leaf.pinned, c.leaf.cleared = false, false
	a.Lines = append(a.Lines, r.line)
	a.records = append(a.records, r.uuid)
	c.addBlocks(a, message.Member("content"))
	a.members = c.members(a, r, message)
	usage := message.Member("usage")
	if a.Lines[0] < c.learned.last[a.key] || c.path != "" { // it is that of the whole answer: the last part has it
		usage = nil
	}
	a.spent.note(usage, message.Member("model"), r.time())
}

// isError reports whether an answer says that there was none.
func isError(r *record) bool {
	return isTrue(r.Member("isApiErrorMessage")) || !r.Member("error").Missing()
}

// hasContent reports whether a record says something.
func (c *converter) hasContent(message foreign.Object) (has bool) {
	content := message.Member("content")
	content.EachObject(c.ofBlock, func(block rawjson.Value, members []rawjson.Member) bool {
		has = block.IsObject() && !isEmptyText(members)
		return !has
	})
	return has || content.IsString() && !content.Is("")
}

// addBlocks adds the blocks of a record, and notes the tools that are called in it.
func (c *converter) addBlocks(a *answer, content rawjson.Value) {
	if content.IsString() && !content.Is("") && !c.Facts {
		a.separate()
		a.blocks = append(append(append(a.blocks, `{"type":"text","text":`...), content...), '}')
	}
	if c.Facts && !bytes.Contains(content, []byte("tool_use")) {
		return
	}
	content.EachObject(c.ofBlock, func(block rawjson.Value, of []rawjson.Member) bool {
		members := foreign.Object(of)
		if !block.IsObject() || isEmptyText(members) {
			return true
		}
		if name := members.Member("name"); name.IsString() {
			id, _ := members.Member("id").Text()
			c.calls[id], a.calls = call{slices.Clone(name), c.prompt(members), a.place}, true
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

// appendAnswerBlock appends a block of an answer in the words of a session. Those that only this client has stay as they
// are.
func appendAnswerBlock(dst []byte, whole rawjson.Value, block foreign.Object) []byte {
	typ := block.Member("type")
	switch {
	case typ.Is("thinking"):
		dst = foreign.AppendMember(append(dst, `{"type":"thinking"`...), "thinking", block.Member("thinking"))
		return append(foreign.AppendMember(dst, "thinkingSignature", block.Member("signature")), '}')
	case typ.Is("redacted_thinking"):
		return append(foreign.AppendMember(append(dst, `{"type":"redactedThinking"`...), "data", block.Member("data")), '}')
	case typ.Is("tool_use"), typ.Is("server_tool_use"):
		dst = foreign.AppendMember(append(dst, `{"type":"toolCall"`...), "id", block.Member("id"))
		dst = foreign.AppendMember(dst, "name", block.Member("name"))
		if input := block.Member("input"); input.IsObject() {
			return append(foreign.AppendMember(dst, "arguments", input), '}')
		}
		return append(dst, `,"arguments":{}}`...)
	}
	return append(dst, whole...)
}

// members returns the members of an answer's message that its last record decides.
func (c *converter) members(a *answer, r *record, message foreign.Object) []byte {
	dst := a.members[:0]
	reason := stopReason(message.Member("stop_reason"), a.calls)
	if isError(r) {
		reason = "error"
	}
	dst = append(append(append(dst, `,"stopReason":"`...), reason...), '"')
	dst = foreign.AppendMember(dst, "responseId", message.Member("id"))
	if text := r.Member("error"); text.IsString() {
		dst = foreign.AppendMember(dst, "errorMessage", text)
	} else if isError(r) {
		dst = rawjson.AppendQuoted(append(dst, `,"errorMessage":`...), textOf(message.Member("content")))
	}
	if status := r.Member("apiErrorStatus"); status.IsNumber() {
		dst = foreign.AppendMember(dst, "errorStatus", status)
	}
	return foreign.AppendMillis(dst, r.time())
}

// stopReason returns why an answer ended, in the words of a session. While it is written, the client does not say.
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

// flush appends the answer that is open, and what follows it.
func (c *converter) flush(out []byte) []byte {
	if c.open == nil {
		return out
	}
	out = c.open.appendTo(out, &c.body)
	if c.open.key != "" {
		c.closed[c.open.key] = true
	}
	c.open, c.spare = nil, c.open
	return out
}

// appendTo appends an answer and what follows it, by means of memory that is used again.
func (a *answer) appendTo(out []byte, memory *[]byte) []byte {
	body := append(append(*memory, `"message":{"role":"assistant","content":[`...), a.blocks...)
	body = append(append(body, `],"api":"anthropic-messages","provider":"anthropic","model":`...), a.spent.by()...)
	body = a.spent.appendTo(body, a.Time, a.cost)
	a.Body = append(append(body, a.members...), '}')
	out = append(a.AppendTo(out), a.after...)
	*memory, a.Body = reuse(a.Body), nil
	return out
}

package claude

import (
	"slices"
	"strconv"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage/foreign"
)

// maxAfter is how many bytes of entries wait behind an answer for the rest of it. Its records come one after the other, with
// results of its calls between them.
const maxAfter = 8 << 20

// answer is what the model said at once. The client writes a record for each block of it, all with the id of the message,
// and each with all of its usage.
type answer struct {
	foreign.Entry
	place   *place
	key     string // the id of the message
	blocks  []blocks
	members []byte // of the message, besides role and content: those of the last record
	after   []byte // entries that follow it
}

// blocks is what one record adds to an answer.
type blocks struct {
	uuid string
	json []byte
}

// assistant adds a record to the answer that it belongs to, or begins another one.
func (c *converter) assistant(out []byte, r *record) []byte {
	message := foreign.Read(r.Member("message"))
	key, _ := message.Member("id").Text()
	if a := c.open; a != nil && key != "" && a.key == key {
		c.add(a, r, message)
		return out
	}
	if !hasContent(message) && !isTrue(r.Member("isApiErrorMessage")) && r.Member("error").Missing() {
		c.pass(r)
		return out
	}
	out = c.flush(out)
	parent := c.placeOf(r.parent)
	parent.taken = true
	a := &answer{
		Entry: foreign.Entry{Type: "message", ID: r.id(), Parent: parent.id, Time: slices.Clone(r.time())},
		place: &place{id: r.id(), first: r.id()}, key: key,
	}
	c.add(a, r, message)
	c.made(&a.Entry)
	c.open = a
	return out
}

// add adds a record to an answer. One that comes again takes the place of the first.
func (c *converter) add(a *answer, r *record, message foreign.Object) {
	if r.uuid != "" {
		c.places[r.uuid] = a.place
	}
	add := blocks{r.uuid, c.blocks(message, a.place)}
	if i := slices.IndexFunc(a.blocks, func(b blocks) bool { return b.uuid == r.uuid && r.uuid != "" }); i >= 0 {
		a.blocks[i] = add
	} else {
		a.blocks = append(a.blocks, add)
	}
	a.Lines = append(a.Lines, r.line)
	a.members = c.members(a.members[:0], r, message)
}

// hasContent reports whether a record says something.
func hasContent(message foreign.Object) (has bool) {
	content := message.Member("content")
	text, _ := content.Bytes()
	content.EachElement(func(block rawjson.Value, _ int) bool {
		has = block.IsObject()
		return !has
	})
	return has || len(text) > 0
}

// blocks returns the blocks of a record as those of a message, with commas between them, and notes the tools that are
// called in it.
func (c *converter) blocks(message foreign.Object, place *place) (list []byte) {
	content := message.Member("content")
	if text, ok := content.Bytes(); ok && len(text) > 0 {
		return append(append([]byte(`{"type":"text","text":`), content...), '}')
	}
	content.EachElement(func(block rawjson.Value, _ int) bool {
		if !block.IsObject() {
			return true
		}
		if len(list) > 0 {
			list = append(list, ',')
		}
		members := foreign.Read(block)
		if name := members.Member("name"); name.IsString() {
			id, _ := members.Member("id").Text()
			c.calls[id] = call{slices.Clone(name), place}
		}
		list = appendAnswerBlock(list, block, members)
		return true
	})
	return list
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

// members appends the members of an answer's message that its last record decides.
func (c *converter) members(dst []byte, r *record, message foreign.Object) []byte {
	dst = append(dst, `,"api":"anthropic-messages","provider":"anthropic"`...)
	if model := message.Member("model"); model.IsString() {
		dst = foreign.AppendMember(dst, "model", model)
	} else {
		dst = append(dst, `,"model":"unknown"`...)
	}
	key, _ := message.Member("id").Text()
	if usage := message.Member("usage"); usage.IsObject() && !c.closed[key] {
		dst = appendUsage(dst, usage)
	}
	reason := stopReason(message.Member("stop_reason"))
	if isTrue(r.Member("isApiErrorMessage")) {
		reason = "error"
	}
	dst = append(append(append(dst, `,"stopReason":"`...), reason...), '"')
	dst = foreign.AppendMember(dst, "responseId", message.Member("id"))
	if text := r.Member("error"); text.IsString() {
		dst = foreign.AppendMember(dst, "errorMessage", text)
	}
	if status := r.Member("apiErrorStatus"); status.IsNumber() {
		dst = foreign.AppendMember(dst, "errorStatus", status)
	}
	return foreign.AppendMillis(dst, r.time())
}

// appendUsage appends the tokens of an answer. The client records no costs.
func appendUsage(dst []byte, usage rawjson.Value) []byte {
	dst = append(dst, `,"usage":{`...)
	total := int64(0)
	for i, m := range [...]struct{ name, of string }{
		{"input", "input_tokens"}, {"output", "output_tokens"},
		{"cacheRead", "cache_read_input_tokens"}, {"cacheWrite", "cache_creation_input_tokens"},
	} {
		if i > 0 {
			dst = append(dst, ',')
		}
		n := foreign.Count(usage.Member(m.of))
		total += n
		dst = append(append(append(dst, '"'), m.name...), `":`...)
		dst = strconv.AppendInt(dst, n, 10)
	}
	dst = strconv.AppendInt(append(dst, `,"totalTokens":`...), total, 10)
	return append(dst, '}')
}

// stopReason returns why an answer ended, in the words of a session.
func stopReason(v rawjson.Value) string {
	switch {
	case v.Missing(), v.IsNull(), v.Is("end_turn"), v.Is("stop_sequence"), v.Is("pause_turn"):
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
	out = c.open.appendTo(out)
	if c.open.key != "" {
		c.closed[c.open.key] = true
	}
	c.open = nil
	return out
}

// appendTo appends an answer and what follows it.
func (a *answer) appendTo(out []byte) []byte {
	body := []byte(`"message":{"role":"assistant","content":[`)
	for _, b := range a.blocks {
		if len(b.json) == 0 {
			continue
		}
		if body[len(body)-1] != '[' {
			body = append(body, ',')
		}
		body = append(body, b.json...)
	}
	a.Body = append(append(append(body, ']'), a.members...), '}')
	return append(a.AppendTo(out), a.after...)
}

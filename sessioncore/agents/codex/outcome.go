package codex

import (
	"bytes"
	"slices"
	"strconv"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// maxHeld bounds the records with results that wait for their items, in bytes.
const maxHeld = 8 << 20

// outcome is the result of a call. An event has it before the item, or without an item. It is
// immutable; only its last version is continued by with, in the same memory.
type outcome struct {
	at        agents.Origin
	blocks    agents.Blocks
	failed    bool
	changes   []rawjson.Member // files, and the changes to them
	patched   bool             // it is of a patch
	succeeded bool             // a patch succeeded
}

// The types of events with the result of a call.
const (
	dynamicEvent = "dynamic_tool_call_response"
	execEvent    = "exec_command_end"
	imageEvent   = "view_image_tool_call"
	mcpEvent     = "mcp_tool_call_end"
	patchEvent   = "patch_apply_end"
)

// toolResult handles the result of a call in an event of size bytes. Calls of a script (`exec`) have
// no items of the model.
func (c *converter) toolResult(p agents.Object, typ string, size int) {
	id := p.AnyOf("call_id", "callId")
	text, ok := id.Text()
	if !ok || isOfPerson(p) {
		return
	}
	o, name, args := outcomeOf(typ, p)
	script := c.calls[c.script]
	if _, isKnown := c.calls[text]; !isKnown && o.patched && c.script != "" && !script.done {
		c.calls[text] = callState{done: true}
		o.at = c.Here()
		c.wait(c.script, o, size)
		return
	}
	c.settleCall(o, id, name, args, size)
}

// itemResult handles a call with its result in an item of the program, in an event of size bytes.
func (c *converter) itemResult(item agents.Object, typ string, size int) {
	if isOfPerson(item) {
		return
	}
	id := item.Member("id")
	if !id.IsString() {
		id = agents.Quoted(c.id)
	}
	o, name, args := outcomeOf(typ, item)
	text, _ := id.Text()
	if _, isKnown := c.calls[text]; !isKnown && o.patched {
		o = &outcome{blocks: o.blocks, failed: o.failed}
		args = patchOf(item.Member("changes"))
	}
	c.settleCall(o, id, name, args, size)
}

// isOfPerson reports whether a person ran the command. A message of the person has it.
func isOfPerson(p agents.Object) bool {
	source := p.Member("source")
	return source.Is("user_shell") || source.Is("userShell")
}

// settleCall adds an outcome to its call, or adds the call with it where no item of the model has
// the call. A call with a result stays as it is.
func (c *converter) settleCall(o *outcome, id, name, args rawjson.Value, size int) {
	o.at = c.Here()
	text, _ := id.Text()
	known, isKnown := c.calls[text]
	switch {
	case known.done:
	case isKnown:
		c.wait(text, o, size)
	default:
		within := c.isOpen()
		c.call(id, name, args)
		c.result(id, name, o)
		c.ended = !within // the script may call more, before its own result
	}
}

// wait keeps the outcome of a call until its item comes, or cannot come any more.
func (c *converter) wait(id string, o *outcome, size int) {
	known := c.calls[id]
	if known.events == nil {
		c.waiting = append(c.waiting, id)
	} else {
		o = known.events.with(o)
	}
	known.events = o
	c.calls[id] = known
	c.held += size
	if c.held > maxHeld {
		c.finish()
	}
}

// finish makes entries of the results that only events have.
func (c *converter) finish() {
	waiting := c.waiting
	c.waiting = nil
	c.held = 0
	for _, id := range waiting {
		if o := c.calls[id].events; o != nil {
			at := o.at
			c.Of(&at, func() { c.result(rawjson.AppendQuoted(nil, id), nil, o) })
		}
	}
}

// outcomeOf returns the outcome in an event of a type, or in the item that newer clients write in its
// place, and its call.
func outcomeOf(typ string, p agents.Object) (o *outcome, name, args rawjson.Value) {
	status := p.Member("status")
	o = &outcome{failed: string(p.Member("success")) == "false" || status.Is("failed") || status.Is("declined")}
	switch typ {
	case mcpEvent:
		name, args = o.serverCall(p)
	case dynamicEvent:
		name = qualified(p.Member("namespace"), p.Member("tool"))
		args = p.Member("arguments")
		o.blocks = contentBlocks(p.Member("content_items"))
		if len(o.blocks) == 0 {
			o.blocks = textBlock(p.Member("error"))
		}
	case execEvent:
		name = rawjson.Value(`"exec_command"`)
		args = agents.AppendMember([]byte(`{"type":"exec"`), "command", p.Member("command"))
		args = append(agents.AppendMember(args, "workdir", pathOf(p.Member("cwd"))), '}')
		o.failed = o.failed || !p.Member("exit_code").Missing() && string(p.Member("exit_code")) != "0"
		o.blocks = texts(p, "aggregated_output")
		if len(o.blocks) == 0 {
			o.blocks = texts(p, "stdout", "stderr")
		}
	case imageEvent:
		name = rawjson.Value(`"view_image"`)
		args = append(agents.AppendMember([]byte(`{"type":"image"`), "path", pathOf(p.Member("path"))), '}')
	case madeImageEvent:
		name = agents.Quoted(imageKind)
		args = madeImageArguments(p)
		o.blocks = madeImage(p)
	case patchEvent:
		name = rawjson.Value(`"apply_patch"`)
		o.patched = true
		o.succeeded = !o.failed
		o.blocks = texts(p, "stdout", "stderr")
		for m := range p.Member("changes").EachMember {
			o.changes = append(o.changes, rawjson.Member{Key: slices.Clone(m.Key), Value: slices.Clone(m.Value)})
		}
	}
	if !name.IsString() {
		name = rawjson.Value(`"unknown"`)
	}
	return o, name, args
}

// serverCall reads the outcome of a call of a server's tool, and returns the call.
func (o *outcome) serverCall(p agents.Object) (name, args rawjson.Value) {
	invocation := p
	if inner := p.Member("invocation"); !inner.Missing() {
		invocation = agents.Read(inner)
	}
	server, _ := invocation.Member("server").Text()
	result := p.Member("result")
	failure := agents.Read(result).AnyOf("Err", "err")
	if failure.Missing() {
		failure = p.Member("error")
	}
	if ok := result.Member("Ok"); len(ok) > 0 {
		result = ok
	}
	o.failed = o.failed || result.Member("is_error").IsTrue() || result.Member("isError").IsTrue() || !failure.Missing()
	if failure.IsObject() {
		failure = failure.Member("message")
	}
	o.blocks = textBlock(failure)
	if len(o.blocks) == 0 {
		o.blocks = outputBlocks(result)
	}
	if len(o.blocks) == 0 {
		o.blocks = outputBlocks(agents.Read(result).AnyOf("structuredContent", "structured_content"))
	}
	return qualified(agents.Quoted("mcp__"+server), invocation.Member("tool")), invocation.Member("arguments")
}

// texts returns a block for each member that is a text and not empty.
func texts(p agents.Object, keys ...string) (blocks agents.Blocks) {
	for _, key := range keys {
		if text := p.Member(key); len(text) > len(`""`) {
			blocks.Text(text)
		}
	}
	return blocks
}

// with returns the outcome of two patches in a script. Files of a failed patch count only if none
// succeeded.
func (o *outcome) with(next *outcome) *outcome {
	if !o.patched || !next.patched {
		return o
	}
	both := *o
	both.succeeded = o.succeeded || next.succeeded
	both.failed = !both.succeeded
	if len(o.blocks) > 0 && len(next.blocks) > 0 {
		both.blocks = append(both.blocks, ',')
	}
	both.blocks = append(both.blocks, next.blocks...)
	switch {
	case o.succeeded == next.succeeded:
		both.changes = append(o.changes, next.changes...)
	case next.succeeded:
		both.changes = next.changes
	}
	return &both
}

// details returns the files that a patch changed, or nil.
func (o *outcome) details() rawjson.Value {
	if !o.patched {
		return nil
	}
	last := make(map[string]int, len(o.changes))
	for i, m := range o.changes {
		last[string(m.Key)] = i
	}
	out := []byte(`{"changes":{`)
	for i, m := range o.changes {
		if last[string(m.Key)] == i {
			out = append(append(append(append(out, m.Key...), ':'), m.Value...), ',')
		}
	}
	out = append(bytes.TrimSuffix(out, []byte{','}), `},"success":`...)
	return append(strconv.AppendBool(out, o.succeeded), '}')
}

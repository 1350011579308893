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

// toolResult handles the result of a call in an event of a type, in a record of size bytes. Calls of a script (`exec`)
// have no items of the model: a patch in one belongs to the script's own result.
func (c *converter) toolResult(p agents.Object, typ string, size int) {
	id := p.AnyOf("call_id", "callId")
	text, ok := id.Text()
	if !ok || isOfPerson(p) {
		return
	}
	o, name, args := outcomeOf(typ, p)
	_, isKnown := c.calls[text]
	isScriptOpen := c.script != "" && !c.calls[c.script].done
	isOfScript := o.patched && !isKnown && isScriptOpen
	if isOfScript {
		c.calls[text] = callState{done: true}
		o.at = c.Here()
		c.wait(c.script, o, size)
		return
	}
	c.settleCall(o, id, name, args, size)
}

// itemResult handles a call with its result in an item of the program, in a record of size bytes. typ is the type of the
// event with the same members.
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
	_, isKnown := c.calls[text]
	if !isKnown && o.patched { // the call that is made has the changes
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
		wasOpen := c.isOpen()
		c.call(id, name, args)
		c.result(id, name, o)
		c.ended = !wasOpen // the script may call more, before its own result
	}
}

// wait keeps the outcome of a call until its item comes, or cannot come any more. size is the outcome's record, in bytes;
// if too many bytes wait, all become entries.
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
		o := c.calls[id].events
		if o == nil { // its item came
			continue
		}
		call := rawjson.AppendQuoted(nil, id)
		at := o.at // Of changes it, and the outcome is immutable
		c.Of(&at, func() { c.result(call, nil, o) })
	}
}

// outcomeOf returns the outcome in an event of a type, or in the item that newer clients write in its
// place, with the name and the arguments of its call. The arguments are missing where the event lacks them.
func outcomeOf(typ string, p agents.Object) (o *outcome, name, args rawjson.Value) {
	status := p.Member("status")
	isRefused := string(p.Member("success")) == "false"
	o = &outcome{failed: isRefused || status.Is("failed") || status.Is("declined")}
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
		args = o.command(p)
	case imageEvent:
		name = rawjson.Value(`"view_image"`)
		args = agents.AppendMember([]byte(`{"type":"image"`), "path", pathOf(p.Member("path")))
		args = append(args, '}')
	case madeImageEvent:
		name = agents.Quoted(imageKind)
		args = madeImageArguments(p)
		o.blocks = madeImage(p)
	case patchEvent:
		name = rawjson.Value(`"apply_patch"`)
		o.patch(p)
	}
	if !name.IsString() {
		name = rawjson.Value(`"unknown"`)
	}
	return o, name, args
}

// command reads the outcome of a command of a shell, and returns the arguments of its call.
func (o *outcome) command(p agents.Object) (args rawjson.Value) {
	args = agents.AppendMember([]byte(`{"type":"exec"`), "command", p.Member("command"))
	args = agents.AppendMember(args, "workdir", pathOf(p.Member("cwd")))
	args = append(args, '}')
	exitCode := p.Member("exit_code")
	if !exitCode.Missing() && string(exitCode) != "0" {
		o.failed = true
	}
	o.blocks = texts(p, "aggregated_output")
	if len(o.blocks) == 0 {
		o.blocks = texts(p, "stdout", "stderr")
	}
	return args
}

// patch reads the outcome of a patch.
func (o *outcome) patch(p agents.Object) {
	o.patched = true
	o.succeeded = !o.failed
	o.blocks = texts(p, "stdout", "stderr")
	for m := range p.Member("changes").EachMember {
		change := rawjson.Member{Key: slices.Clone(m.Key), Value: slices.Clone(m.Value)}
		o.changes = append(o.changes, change)
	}
}

// serverCall reads the outcome of a call of a server's tool, and returns the call.
func (o *outcome) serverCall(p agents.Object) (name, args rawjson.Value) {
	o.readServerResult(p)
	invocation := p // an item of the program has its members itself
	inner := p.Member("invocation")
	if !inner.Missing() {
		invocation = agents.Read(inner)
	}
	server, _ := invocation.Member("server").Text()
	namespace := agents.Quoted("mcp__" + server)
	name = qualified(namespace, invocation.Member("tool"))
	return name, invocation.Member("arguments")
}

// readServerResult reads the result of a server's tool: its error, else its content, else its structured content. An event
// has either in a member Ok or Err of the result.
func (o *outcome) readServerResult(p agents.Object) {
	result := p.Member("result")
	failure := agents.Read(result).AnyOf("Err", "err")
	if failure.Missing() {
		failure = p.Member("error")
	}
	success := result.Member("Ok")
	if len(success) > 0 {
		result = success
	}
	isError := result.Member("is_error").IsTrue() || result.Member("isError").IsTrue()
	if isError || !failure.Missing() {
		o.failed = true
	}
	if failure.IsObject() {
		failure = failure.Member("message")
	}
	o.blocks = textBlock(failure)
	if len(o.blocks) == 0 {
		o.blocks = outputBlocks(result)
	}
	if len(o.blocks) == 0 {
		structured := agents.Read(result).AnyOf("structuredContent", "structured_content")
		o.blocks = outputBlocks(structured)
	}
}

// texts returns a block for each member that is a text and not empty.
func texts(p agents.Object, keys ...string) (blocks agents.Blocks) {
	for _, key := range keys {
		text := p.Member(key)
		if len(text) > len(`""`) {
			blocks.Text(text)
		}
	}
	return blocks
}

// with returns the outcome of two patches in a script, o if one of both is of no patch. Files of a failed patch count
// only if none succeeded. It appends to the lists of o, so that it may be called once for each o.
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

// details returns the files that a patch changed as an object, each with its last change, or nil for no patch.
func (o *outcome) details() rawjson.Value {
	if !o.patched {
		return nil
	}
	last := make(map[string]int, len(o.changes)) // the index of the last change to each file
	for i, change := range o.changes {
		last[string(change.Key)] = i
	}
	out := []byte(`{"changes":{`)
	for i, change := range o.changes {
		if last[string(change.Key)] != i {
			continue
		}
		out = append(out, change.Key...)
		out = append(out, ':')
		out = append(out, change.Value...)
		out = append(out, ',')
	}
	out = bytes.TrimSuffix(out, []byte{','})
	out = append(out, `},"success":`...)
	out = strconv.AppendBool(out, o.succeeded)
	return append(out, '}')
}

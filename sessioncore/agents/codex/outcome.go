package codex

import (
	"slices"
	"strconv"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// outcome is the result of a call. An event has it before the item, or without an item.
type outcome struct {
	at        record
	blocks    []byte
	failed    bool
	changes   []rawjson.Member // files, and the changes to them
	patched   bool             // it is of a patch
	succeeded bool             // a patch succeeded
}

// toolResult handles the result of a call in an event. Calls of a script (`exec`) have no items.
func (c *converter) toolResult(out []byte, r *record, typ string) []byte {
	p := r.payload
	id := p.AnyOf("call_id", "callId")
	call, ok := id.Text()
	if !ok || p.Member("source").Is("user_shell") { // a message of the person has it
		return out
	}
	o, name, args := outcomeOf(typ, p)
	t, known := c.tools[call]
	if !known && o.patched { // by the last script
		if script := c.tools[c.script]; c.script != "" && !script.done && script.events.size()+o.size() <= maxWaiting {
			call, t, known = c.script, script, true
		}
	}
	o.at = r.snapshot()
	switch {
	case known && t.done:
		return out
	case known:
		return c.wait(out, call, o)
	}
	within := c.open != nil && !c.open.ended
	out = c.result(c.call(out, r, id, name, args), r, id, name, o)
	if within && c.open != nil {
		c.open.ended = false // the script may call more, before its own result
	}
	return out
}

// outcomeOf returns the outcome in an event, and its call.
func outcomeOf(typ string, p agents.Object) (o *outcome, name, args rawjson.Value) {
	status := p.Member("status")
	o = &outcome{failed: string(p.Member("success")) == "false" || status.Is("failed") || status.Is("declined")}
	switch typ {
	case "mcp_tool_call_end":
		invocation, result := agents.Read(p.Member("invocation")), p.Member("result")
		server, _ := invocation.Member("server").Text()
		name = qualified(rawjson.AppendQuoted(nil, "mcp__"+server), invocation.Member("tool"))
		args = invocation.Member("arguments")
		failure := agents.Object{}.Read(result).AnyOf("Err", "err")
		if len(failure) == 0 {
			failure = p.Member("error")
		}
		if ok := result.Member("Ok"); len(ok) > 0 {
			result = ok
		}
		o.failed = o.failed || isTrue(result.Member("is_error")) || isTrue(result.Member("isError")) ||
			!failure.Missing()
		switch {
		case failure.IsString():
			o.blocks = textBlock(failure)
		case len(result) > 0 && string(result) != "null":
			if o.blocks = outputBlocks(result); len(o.blocks) == 0 {
				o.blocks = outputBlocks(agents.Read(result).AnyOf("structuredContent", "structured_content"))
			}
		}
	case "dynamic_tool_call_response":
		name, args = qualified(p.Member("namespace"), p.Member("tool")), p.Member("arguments")
		o.blocks = contentBlocks(p.Member("content_items"))
		if text := p.Member("error"); len(o.blocks) == 0 && text.IsString() {
			o.blocks = textBlock(text)
		}
	case "exec_command_end":
		name = rawjson.Value(`"exec_command"`)
		args = agents.AppendMember([]byte(`{"type":"exec"`), "command", p.Member("command"))
		args = append(agents.AppendMember(args, "workdir", p.Member("cwd")), '}')
		o.failed = o.failed || len(p.Member("exit_code")) > 0 && string(p.Member("exit_code")) != "0"
		o.blocks = texts(p, "aggregated_output")
		if len(o.blocks) == 0 {
			o.blocks = texts(p, "stdout", "stderr")
		}
	case "patch_apply_end":
		name, o.patched, o.succeeded = rawjson.Value(`"apply_patch"`), true, !o.failed
		o.blocks = texts(p, "stdout", "stderr")
		p.Member("changes").EachMember(func(m rawjson.Member) bool {
			o.changes = append(o.changes, rawjson.Member{Key: slices.Clone(m.Key), Value: slices.Clone(m.Value)})
			return true
		})
	}
	if !name.IsString() {
		name = rawjson.Value(`"unknown"`)
	}
	return o, name, args
}

func isTrue(v rawjson.Value) bool { return string(v) == "true" }

// texts returns a block for each member that is a text and not empty.
func texts(p agents.Object, keys ...string) (blocks agents.Blocks) {
	for _, key := range keys {
		if text := p.Member(key); len(text) > len(`""`) {
			blocks.Text(text)
		}
	}
	return blocks
}

// size returns the size of an outcome in bytes.
func (o *outcome) size() (n int) {
	if o == nil {
		return 0
	}
	for _, m := range o.changes {
		n += len(m.Key) + len(m.Value)
	}
	return n + len(o.blocks)
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
	if both.blocks = slices.Clip(o.blocks); len(o.blocks) > 0 && len(next.blocks) > 0 {
		both.blocks = append(both.blocks, ',')
	}
	both.blocks = append(both.blocks, next.blocks...)
	switch {
	case o.succeeded == next.succeeded:
		both.changes = append(slices.Clip(o.changes), next.changes...)
	case next.succeeded:
		both.changes = next.changes
	}
	return &both
}

// appendTo appends the member details of a result: the files that a patch changed.
func (o *outcome) appendTo(dst []byte) []byte {
	if !o.patched {
		return dst
	}
	last := make(map[string]int, len(o.changes))
	for i, m := range o.changes {
		last[string(m.Key)] = i
	}
	dst = append(dst, `,"details":{"changes":{`...)
	first := true
	for i, m := range o.changes {
		if last[string(m.Key)] != i {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(append(append(dst, m.Key...), ':'), m.Value...)
	}
	return append(strconv.AppendBool(append(dst, `},"success":`...), o.succeeded), '}')
}

// wait keeps the outcome of a call until its item comes, or cannot come any more.
func (c *converter) wait(out []byte, call string, o *outcome) []byte {
	t := c.tools[call]
	c.waitingSize -= t.events.size()
	if t.events == nil {
		t.events = o
		c.waiting = append(c.waiting, call)
	} else {
		t.events = t.events.with(o)
	}
	c.tools[call] = t
	if c.waitingSize += t.events.size(); c.waitingSize > maxWaiting {
		return c.finish(out)
	}
	return out
}

// finish makes entries of the results that only events have.
func (c *converter) finish(out []byte) []byte {
	for _, call := range slices.Clone(c.waiting) {
		if t := c.tools[call]; t.events != nil {
			r := t.events.at
			out = c.result(out, &r, rawjson.AppendQuoted(nil, call), t.name, t.events)
		}
	}
	return out
}

// settle makes entries of everything that only events have, as no item follows any more.
func (c *converter) settle(out []byte) []byte {
	out = c.finish(out)
	return c.flushEvents(out, len(c.events))
}

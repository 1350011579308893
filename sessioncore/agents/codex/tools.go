package codex

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// tool is a call of a tool for later records.
type tool struct {
	name   rawjson.Value
	hosted bool     // the provider runs it: no item has its result
	done   bool     // the result is known
	events *outcome // the result in events, or nil
}

// toolCall adds a call of a tool to the answer. kind is the type of the item without its ending.
func (c *converter) toolCall(out []byte, r *record, item agents.Object, kind string) []byte {
	name, id := qualified(item.Member("namespace"), item.Member("name")), item.AnyOf("call_id", "id")
	if kind == "web_search" {
		return c.searchCall(out, r, item, id)
	}
	if !name.IsString() {
		name = rawjson.AppendQuoted(nil, kind)
	}
	// The event of a search may precede its call.
	var search *outcome
	if i := c.searchEvent(id); i >= 0 && id.IsString() {
		e := c.events[i]
		c.events = slices.Delete(c.events, i, i+1)
		search = &outcome{at: e.at, blocks: outputBlocks(e.results)}
	}
	args := item.AnyOf("arguments", "input", "action", "revised_prompt")
	out = c.call(c.flushEvents(out, len(c.events)), r, id, name, args)
	call, _ := id.Text()
	if kind == "custom_tool" {
		c.script = call
	}
	if search != nil {
		out = c.wait(out, call, search)
	}
	return out
}

// qualified returns the name of a tool with its namespace, in one word as in older rollouts. Names
// of tools of the provider's apps begin with the separator.
func qualified(namespace, name rawjson.Value) rawjson.Value {
	space, _ := namespace.Text()
	tool, ok := name.Text()
	joint := "__"
	switch {
	case space == "" || !ok || strings.HasPrefix(tool, strings.TrimSuffix(space, joint)+joint):
		return name
	case strings.HasSuffix(space, joint), strings.HasPrefix(space, "mcp__codex_apps__") && strings.HasPrefix(tool, "_"):
		joint = ""
	}
	return rawjson.AppendQuoted(nil, space+joint+tool)
}

// call adds a call to the answer.
func (c *converter) call(out []byte, r *record, id, name, args rawjson.Value) []byte {
	if !id.IsString() {
		id = rawjson.AppendQuoted(nil, r.id)
	}
	text, _ := id.Text()
	c.tools[text] = tool{name: slices.Clone(name), events: c.tools[text].events}
	b := agents.AppendMember([]byte(`{"type":"toolCall"`), "id", id)
	b = agents.AppendMember(b, "name", name)
	b = append(append(b, `,"arguments":`...), agents.Arguments(args)...)
	if c.open == nil || c.open.ended {
		out = c.begin(out, r)
	}
	if c.open.stop == "" {
		c.open.stop = "toolUse"
	}
	return c.respond(out, r, append(b, '}'))
}

// output makes an entry of an item with the result of a call. One without a call is a message of
// another thread or of a scheduled task.
func (c *converter) output(out []byte, r *record, item agents.Object) []byte {
	output, id := item.AnyOf("output", "tools"), item.Member("call_id")
	name := qualified(item.Member("namespace"), item.Member("name"))
	out = c.flushEvents(out, len(c.events))
	if id.IsString() {
		failed := string(output.Member("success")) == "false" || item.Member("status").Is("failed") || saysFailure(output)
		return c.result(out, r, id, name, &outcome{blocks: outputBlocks(output), failed: failed})
	}
	blocks := outputBlocks(output)
	if len(blocks) == 0 {
		return out
	}
	text, ok := name.Text()
	if !ok {
		text = "output"
	}
	return c.custom(out, r, "codex/"+text, item, blocks, true)
}

// failedText and failedMetadata match outputs of a patch or command that failed, by their beginning
// or their end: no member says so.
var (
	failedText     = regexp.MustCompile(`^"(?:Exit code: -?[1-9]|apply_patch verification failed)`)
	failedMetadata = regexp.MustCompile(`\\"metadata\\": ?\{\\"exit_code\\": ?-?[1-9][^{}]*\}\}"$`)
)

// maxMetadata is how long the metadata behind an output is at most, in bytes.
const maxMetadata = 200

func saysFailure(output rawjson.Value) bool {
	return failedText.Match(output) || bytes.HasPrefix(output, []byte(`"{\"output\":`)) &&
		failedMetadata.Match(output[max(0, len(output)-maxMetadata):])
}

// result makes an entry of the result of a call, with the files in its events, if any.
func (c *converter) result(out []byte, r *record, id, name rawjson.Value, o *outcome) []byte {
	call, ok := id.Text()
	if !ok {
		return out
	}
	t, known := c.tools[call]
	if known {
		name = t.name
	}
	b := append(append(agents.AppendResult(nil, id, name), o.blocks...), `],"isError":`...)
	b = strconv.AppendBool(b, o.failed)
	if t.events != nil {
		b = t.events.appendTo(b)
		c.waitingSize -= t.events.size()
		c.waiting = slices.DeleteFunc(c.waiting, func(other string) bool { return other == call })
	} else {
		b = o.appendTo(b)
	}
	if known {
		c.tools[call] = tool{name: t.name, done: true}
	}
	b = append(agents.AppendMillis(b, r.time), '}')
	return c.put(out, r, &agents.Entry{Type: "message", Time: r.time, Body: b})
}

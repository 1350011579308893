package codex

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// callState is the state of a call of a tool.
type callState struct {
	hosted bool     // the provider runs it: no item has its result
	done   bool     // the result is known
	events *outcome // the result in events, or nil
}

// toolCall adds a call of a tool to the answer. kind is the type of the item without its ending.
func (c *converter) toolCall(item agents.Object, kind string) {
	name := qualified(item.Member("namespace"), item.Member("name"))
	id := item.AnyOf("call_id", "id")
	switch kind {
	case "web_search":
		c.searchCall(item, id)
		return
	case imageKind:
		c.imageCall(item, id)
		return
	}
	if !name.IsString() {
		name = agents.Quoted(kind)
	}
	found := c.takeSearchEvent(id)
	c.flushEvents(len(c.events))
	args := item.AnyOf("arguments", "input", "action", "revised_prompt")
	c.noteCall(name, args)
	c.call(id, name, args)
	text, _ := id.Text()
	if kind == "custom_tool" { // a script, which may call other tools
		c.script = text
	}
	if found != nil {
		c.wait(text, found, 0)
	}
}

// takeSearchEvent removes the event of the search with an id, which may precede its call, and returns its outcome. It
// returns nil if there is none.
func (c *converter) takeSearchEvent(id rawjson.Value) *outcome {
	if !id.IsString() {
		return nil
	}
	i := c.searchEvent(id)
	if i < 0 {
		return nil
	}
	e := c.events[i]
	c.events = slices.Delete(c.events, i, i+1)
	return &outcome{at: e.at, blocks: e.results}
}

// ownNamespace is the namespace of the program's own tools in newer rollouts.
const ownNamespace = "functions"

// qualified returns the name of a tool with its namespace, in one word as in older rollouts. Names
// of tools of the provider's apps begin with the separator.
func qualified(namespace, name rawjson.Value) rawjson.Value {
	space, _ := namespace.Text()
	tool, ok := name.Text()
	if !ok || space == "" || space == ownNamespace {
		return name
	}
	joint := "__"
	withJoint := strings.TrimSuffix(space, joint) + joint
	isQualified := strings.HasPrefix(tool, withJoint)
	if isQualified {
		return name
	}
	isOfApp := strings.HasPrefix(space, "mcp__codex_apps__") && strings.HasPrefix(tool, "_")
	if isOfApp || strings.HasSuffix(space, joint) {
		joint = ""
	}
	return agents.Quoted(space + joint + tool)
}

// call adds a call to the answer. One without an id gets the record's. A result that events have stays known.
func (c *converter) call(id, name, args rawjson.Value) {
	if !id.IsString() {
		id = agents.Quoted(c.id)
	}
	text, _ := id.Text()
	c.calls[text] = callState{events: c.calls[text].events}
	c.answer().Call(id, name, args)
}

// output makes an entry of an item with the result of a call. One without a call is a message of
// another thread or of a scheduled task.
func (c *converter) output(item agents.Object) {
	output := item.AnyOf("output", "tools")
	id := item.Member("call_id")
	name := qualified(item.Member("namespace"), item.Member("name"))
	blocks := outputBlocks(output)
	c.flushEvents(len(c.events))
	switch {
	case id.IsString():
		isRefused := string(output.Member("success")) == "false"
		hasFailed := isRefused || item.Member("status").Is("failed") || saysFailure(output)
		c.result(id, name, &outcome{blocks: blocks, failed: hasFailed})
	case len(blocks) > 0:
		kind, ok := name.Text()
		if !ok {
			kind = "output"
		}
		c.custom(kind, item, blocks, isShown)
	}
}

// failedText and failedMetadata match outputs of a patch or command that failed, by their beginning
// or their end: no member says so.
var (
	failedText     = regexp.MustCompile(`^"(?:Exit code: -?[1-9]|apply_patch verification failed)`)
	failedMetadata = regexp.MustCompile(`\\"metadata\\": ?\{\\"exit_code\\": ?-?[1-9][^{}]*\}\}"$`)
)

// maxMetadata is how long the metadata behind an output is at most, in bytes.
const maxMetadata = 200

// saysFailure reports whether the output of a command says that it failed: in its first words, or in metadata at
// the end of an object in a text.
func saysFailure(output rawjson.Value) bool {
	if failedText.Match(output) {
		return true
	}
	hasMetadata := bytes.HasPrefix(output, []byte(`"{\"output\":`))
	end := output[max(0, len(output)-maxMetadata):]
	return hasMetadata && failedMetadata.Match(end)
}

// result makes an entry of the result of a call, and nothing for a call without an id. An outcome in events that waits for
// this result gives it the changed files. name is the tool's, for a call that has no record.
func (c *converter) result(id, name rawjson.Value, o *outcome) {
	text, hasID := id.Text()
	if !hasID {
		return
	}
	details := o.details()
	call, isKnown := c.calls[text]
	if call.events != nil {
		details = call.events.details()
	}
	if isKnown {
		c.calls[text] = callState{done: true}
	} else {
		c.Tool(id, name)
	}
	c.ended = true
	c.Result(agents.ToolResult{
		Call:    id,
		Content: o.blocks,
		IsError: o.failed,
		Details: details,
	})
}

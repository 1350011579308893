package codex

import (
	"slices"
	"strconv"
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage/foreign"
)

// tool is a call of a tool, as far as later records need it.
type tool struct {
	name   rawjson.Value
	hosted bool // the provider runs it: no item has its result
	done   bool // its result is there
	said   *outcome
}

// called adds a call of a tool to the answer. kind is the type of the item without its ending.
func (c *converter) called(out []byte, r *record, item foreign.Object, kind string) []byte {
	name, id := qualified(item.Member("namespace"), item.Member("name")), item.AnyOf("call_id", "id")
	if kind == "web_search" {
		return c.searched(out, r, item, id)
	}
	if !name.IsString() {
		name = rawjson.AppendQuoted(nil, kind)
	}
	// A search that is a call like others may have ended before its call is there.
	var search *outcome
	if i := c.earlySearch(id); i >= 0 && id.IsString() {
		e := c.early[i]
		c.early = slices.Delete(c.early, i, i+1)
		search = &outcome{at: e.at, blocks: outputBlocks(e.results)}
	}
	out = c.call(c.speakAll(out), r, id, name, item.AnyOf("arguments", "input", "action", "revised_prompt"))
	call, _ := id.Text()
	if kind == "custom_tool" {
		c.script = call
	}
	if search != nil {
		out = c.wait(out, call, search)
	}
	return out
}

// qualified returns the name of a tool with its namespace, in the one word that older rollouts
// have. Of the provider's apps the names of tools begin with the mark that is between both.
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
	c.tools[text] = tool{name: slices.Clone(name), said: c.tools[text].said}
	b := foreign.AppendMember([]byte(`{"type":"toolCall"`), "id", id)
	b = foreign.AppendMember(b, "name", name)
	b = append(append(b, `,"arguments":`...), foreign.Arguments(args)...)
	if c.open == nil || c.open.ended {
		out = c.begin(out, r)
	}
	if c.open.stop == "" {
		c.open.stop = "toolUse"
	}
	return c.said(out, r, append(b, '}'))
}

// output makes an entry of an item that is the result of a call. One that belongs to no call is a
// message of another thread or of a task that runs at set times.
func (c *converter) output(out []byte, r *record, item foreign.Object) []byte {
	output, id := item.AnyOf("output", "tools"), item.Member("call_id")
	name := qualified(item.Member("namespace"), item.Member("name"))
	out = c.speakAll(out)
	if id.IsString() {
		failed := string(output.Member("success")) == "false" || item.Member("status").Is("failed")
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
	return c.toldModel(out, r, "codex/"+text, item, blocks, true)
}

// result makes an entry of the result of a call, with the files that it changed by
// its events. name is that of the tool where its call is missing.
func (c *converter) result(out []byte, r *record, id, name rawjson.Value, o *outcome) []byte {
	call, ok := id.Text()
	if !ok {
		return out
	}
	t, known := c.tools[call]
	if known {
		name = t.name
	}
	b := append(append(foreign.AppendResult(nil, id, name), o.blocks...), `],"isError":`...)
	b = strconv.AppendBool(b, o.failed)
	if t.said != nil {
		b = t.said.appendTo(b)
		c.kept -= t.said.size()
		c.waiting = slices.DeleteFunc(c.waiting, func(waits string) bool { return waits == call })
	} else {
		b = o.appendTo(b)
	}
	if known {
		c.tools[call] = tool{name: t.name, done: true}
	}
	b = append(foreign.AppendMillis(b, r.time), '}')
	return c.put(out, r, &foreign.Entry{Type: "message", Time: r.time, Body: b})
}

package codex

import (
	"bytes"
	"slices"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// facts are found in the records at the beginning of a session.
type facts struct {
	home     *Home
	isTitled bool   // the program's list has the title
	allMetas int    // number of session_meta
	parent   string // the thread of which it is a fork or a subagent
	side     bool   // it is a subagent's or a reviewer's
}

// meta handles a session_meta.
func (c *converter) meta(p agents.Object) {
	id, _ := p.Member("id").Text()
	switch c.allMetas++; c.allMetas {
	case 1:
		c.parent, c.side = parentOf(p, c.ID)
		c.titled(id) // a reverted thread continues in another file
	case 2:
		if id != c.ID && c.parent == "" {
			c.parent = id
		}
	}
}

// parentOf returns the parent thread of a fork or subagent, and whether it is a subagent.
func parentOf(meta agents.Object, own string) (parent string, side bool) {
	kind := subagentOf(meta)
	ids := []rawjson.Value{
		meta.Member("history_base").Member("thread_id"), meta.Member("forked_from_id"), meta.Member("parent_thread_id"),
		kind.Member("parent_thread_id"),
	}
	for m := range kind.EachMember { // thread_spawn and others
		ids = append(ids, m.Value.Member("parent_thread_id"))
	}
	for _, v := range ids {
		if id, ok := v.Text(); ok && id != own && parent == "" {
			parent = id
		}
	}
	return parent, len(kind) > 0
}

// subagentOf returns the subagent or reviewer that owns a session_meta.
func subagentOf(meta agents.Object) rawjson.Value {
	source := meta.Member("source")
	switch kind := source.Member("subagent"); {
	case !kind.Missing():
		return kind
	case source.Is("subagent"), meta.Member("thread_source").Is("subagent"):
		return rawjson.Value(`"subagent"`)
	}
	return nil
}

// titled sets the title to that of a thread in the program's list, if it is there. It stays.
func (c *converter) titled(thread string) {
	if !c.isTitled {
		title := c.home.title(thread)
		c.Named(title)
		c.isTitled = title != ""
	}
}

// renamed sets the title to the one that an event gives.
func (c *converter) renamed(title rawjson.Value) {
	if text, _ := title.Text(); !c.isTitled {
		c.Named(text)
	}
}

// request is the heading of the prompt if an editor adds the person's view before it.
const request = "## My request for Codex:"

// promptedBy adds the person's text in a message as a prompt.
func (c *converter) promptedBy(content rawjson.Value) {
	prompted := func(v rawjson.Value) {
		text, _ := v.Text()
		if _, after, found := strings.Cut(text, request); found {
			text = after
		}
		c.Prompted(text)
	}
	prompted(content)
	for block := range content.EachElement {
		prompted(block.Member("text"))
	}
}

// marks select the lines that have one of them in their beginning.
type marks []string

func (m marks) areIn(line []byte) bool {
	line = line[:min(len(line), 400)]
	return slices.ContainsFunc(m, func(mark string) bool { return bytes.Contains(line, []byte(mark)) })
}

var (
	metaMarks   = marks{`"session_meta"`}
	promptMarks = marks{`"session_meta"`, `"user_message"`, `"user"`}
	titleMarks  = marks{`"session_meta"`, `"user_message"`, `"user"`, `"thread_name_updated"`}
)

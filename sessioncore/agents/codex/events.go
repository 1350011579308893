package codex

import (
	"bytes"
	"hash/maphash"
	"slices"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// The speakers of texts.
const (
	person    byte = 'p'
	assistant byte = 'a'
	thought   byte = 't' // of the assistant
	search    byte = 's' // the end of a web search
)

// event is an event without an item yet. The program writes most texts twice: in an event for viewers,
// and in an item for the model. Their order depends on its version.
type event struct {
	by      byte
	text    rawjson.Value // of a search, its action
	hash    uint64
	id      rawjson.Value // of a search
	results agents.Blocks
	at      agents.Origin
}

var seed = maphash.MakeSeed()

// hashOf returns a hash of a text, without white space around it, and of its speaker.
func hashOf(by byte, text []byte) uint64 {
	if by == thought {
		by = assistant
	}
	return maphash.Bytes(seed, bytes.TrimSpace(text))*2 + uint64(by&1)
}

// addTexts adds the texts of an item: one by one, and all together, as in an event. It removes the
// events of the item, and makes entries of earlier ones that have no item.
func (c *converter) addTexts(by byte, contents ...rawjson.Value) {
	var all []byte
	parts := 0
	for _, content := range contents {
		for block := range content.EachElement {
			if text, ok := block.Member("text").Bytes(); ok && len(text) > 0 {
				c.addText(by, text)
				all = append(all, text...)
				parts++
			}
		}
	}
	if parts > 1 {
		c.addText(by, all)
	}
	if parts == 0 || len(c.events) == 0 {
		return
	}
	passed := len(c.events)
	for i := len(c.events) - 1; i >= 0; i-- {
		if _, ok := c.itemTexts[c.events[i].hash]; ok && c.events[i].by != search {
			c.events, passed = slices.Delete(c.events, i, i+1), i
		}
	}
	if by != person {
		c.flushEvents(passed)
	}
}

// markup are the tags in an answer that only the program reads: events have the text without them.
var markup = [...]string{"oai-mem-citation", "proposed_plan"}

// addText adds the text of an item, in each form of events.
func (c *converter) addText(by byte, text []byte) {
	c.itemTexts[hashOf(by, text)] = struct{}{}
	for _, tag := range markup {
		if bytes.Contains(text, []byte("<"+tag+">")) {
			text = without(text, tag)
			c.itemTexts[hashOf(by, text)] = struct{}{}
		}
	}
}

// without returns a text without each tag and its content. An open tag reaches to the end.
func without(text []byte, tag string) (out []byte) {
	for {
		before, in, found := bytes.Cut(text, []byte("<"+tag+">"))
		if !found {
			return append(out, text...)
		}
		out = append(out, before...)
		_, text, _ = bytes.Cut(in, []byte("</"+tag+">"))
	}
}

// addEvent adds the text of an event, unless an item has it.
func (c *converter) addEvent(by byte, text rawjson.Value) {
	said, ok := text.Bytes()
	if !ok || len(said) == 0 {
		return
	}
	hash := hashOf(by, said)
	if _, ok := c.itemTexts[hash]; !ok {
		c.events = append(c.events, event{by: by, text: slices.Clone(text), hash: hash, at: c.Here()})
	}
}

// flushEvents makes entries of the first n events without an item.
func (c *converter) flushEvents(n int) {
	for ; n > 0; n-- {
		e := c.events[0]
		c.events = c.events[1:]
		c.Of(&e.at, func() {
			switch e.by {
			case person:
				c.prompt(textBlock(e.text))
			case assistant:
				c.answer().Text(e.text)
			case thought:
				c.answer().Thinking(e.text, nil)
			case search:
				c.call(e.id, webSearch, e.text)
				c.result(e.id, nil, &outcome{blocks: e.results})
			}
		})
	}
}

// event handles an event of size bytes.
func (c *converter) event(p agents.Object, size int) {
	typ, _ := p.Member("type").Text()
	switch typ {
	case "token_count":
		c.count(p.Member("info"))
	case "task_started", "turn_started": // of a compaction, without a message of a person
		c.ended = true
	case "user_message":
		c.promptedBy(p.Member("message"))
		c.settle()
		c.addEvent(person, p.Member("message"))
	case "agent_message":
		c.addEvent(assistant, p.Member("message"))
	case "agent_reasoning", "agent_reasoning_raw_content":
		c.addEvent(thought, p.Member("text"))
	case "turn_aborted":
		if c.settle(); c.Open() != nil && !c.isPrompted {
			c.Open().Abort()
		}
	case "task_complete", "turn_complete":
		c.settle()
	case "error":
		c.settle()
		c.fail(p.Member("message"))
	case "thread_name_updated":
		c.renamed(p.Member("thread_name"))
	case "thread_rolled_back":
		c.rollBack(agents.Count(p.Member("num_turns")))
	case "web_search_end":
		c.searchResult(p, size)
	case "mcp_tool_call_end", "dynamic_tool_call_response", "exec_command_end", "patch_apply_end":
		c.toolResult(p, typ, size)
	}
}

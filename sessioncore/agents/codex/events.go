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

// eventText is the text of an event without an item yet. The program writes most texts twice: in an
// event for viewers, and in an item for the model. Their order depends on its version.
type eventText struct {
	by      byte
	text    rawjson.Value
	hash    uint64
	id      rawjson.Value // of a search, whose text is its action
	results rawjson.Value
	at      record
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
func (c *converter) addTexts(out []byte, by byte, contents ...rawjson.Value) []byte {
	var all []byte
	parts := 0
	for _, content := range contents {
		content.EachElement(func(block rawjson.Value, _ int) bool {
			if text, ok := block.Member("text").Bytes(); ok && len(text) > 0 {
				c.addText(by, text)
				all = append(all, text...)
				parts++
			}
			return true
		})
	}
	if parts > 1 {
		c.addText(by, all)
	}
	if parts == 0 || len(c.events) == 0 {
		return out
	}
	passed := len(c.events)
	for i := len(c.events) - 1; i >= 0; i-- {
		if _, ok := c.itemTexts[c.events[i].hash]; ok && c.events[i].by != search {
			c.events, passed = slices.Delete(c.events, i, i+1), i
		}
	}
	if by == person {
		return out
	}
	return c.flushEvents(out, passed)
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
func (c *converter) addEvent(by byte, r *record, text rawjson.Value) {
	said, ok := text.Bytes()
	if !ok || len(said) == 0 {
		return
	}
	hash := hashOf(by, said)
	if _, ok := c.itemTexts[hash]; !ok {
		c.events = append(c.events, eventText{by: by, text: slices.Clone(text), hash: hash, at: r.snapshot()})
	}
}

// flushEvents makes entries of the first n events without an item.
func (c *converter) flushEvents(out []byte, n int) []byte {
	for ; n > 0; n-- {
		e := c.events[0]
		c.events = c.events[1:]
		switch e.by {
		case person:
			out = c.prompt(out, &e.at, textBlock(e.text), false)
		case assistant:
			out = c.respond(out, &e.at, textBlock(e.text))
		case thought:
			out = c.respond(out, &e.at, thinkingBlock(nil, e.text))
		case search:
			out = c.call(out, &e.at, e.id, rawjson.Value(`"web_search"`), e.text)
			out = c.result(out, &e.at, e.id, nil, &outcome{blocks: outputBlocks(e.results)})
		}
	}
	return out
}

// searchCall makes entries of a call of the web search. An event may have its results.
func (c *converter) searchCall(out []byte, r *record, item agents.Object, id rawjson.Value) []byte {
	i := c.searchEvent(id)
	args := item.AnyOf("action", "arguments", "input")
	if i < 0 {
		out = c.call(c.flushEvents(out, len(c.events)), r, id, rawjson.Value(`"web_search"`), args)
		if call, ok := id.Text(); ok {
			t := c.tools[call]
			t.hosted = true
			c.tools[call] = t
		}
		return out
	}
	out = c.flushEvents(out, i)
	e := c.events[0]
	c.events = c.events[1:]
	out = c.call(out, r, e.id, rawjson.Value(`"web_search"`), args)
	return c.result(out, &e.at, e.id, nil, &outcome{blocks: outputBlocks(e.results)})
}

// searchEvent returns the index of the event of a search, of any one for a missing id, or -1.
func (c *converter) searchEvent(id rawjson.Value) int {
	return slices.IndexFunc(c.events, func(e eventText) bool {
		return e.by == search && (!id.IsString() || string(id) == string(e.id))
	})
}

// event handles an event.
func (c *converter) event(out []byte, r *record) []byte {
	typ, _ := r.payload.Member("type").Text()
	switch typ {
	case "token_count":
		c.count(r.payload.Member("info"))
	case "task_started", "turn_started": // of a compaction, without a message of a person
		if c.open != nil {
			c.open.ended = true
		}
	case "user_message":
		out = c.settle(out)
		c.addEvent(person, r, r.payload.Member("message"))
	case "agent_message":
		c.addEvent(assistant, r, r.payload.Member("message"))
	case "agent_reasoning", "agent_reasoning_raw_content":
		c.addEvent(thought, r, r.payload.Member("text"))
	case "turn_aborted":
		out = c.settle(out)
		if c.open != nil && !c.isPrompted {
			c.open.stop = "aborted"
		}
	case "task_complete", "turn_complete":
		return c.settle(out)
	case "error":
		return c.fail(c.settle(out), r)
	case "thread_rolled_back":
		return c.rollBack(out, int(agents.Count(r.payload.Member("num_turns"))), r.line)
	case "web_search_end":
		return c.searchResult(out, r)
	case "mcp_tool_call_end", "dynamic_tool_call_response", "exec_command_end", "patch_apply_end":
		return c.toolResult(out, r, typ)
	}
	return out
}

// searchResult handles the results of a search, else the query. Its call may follow.
func (c *converter) searchResult(out []byte, r *record) []byte {
	id, results := r.payload.Member("call_id"), r.payload.AnyOf("results", "query")
	text, ok := id.Text()
	switch t, known := c.tools[text]; {
	case known && t.done:
		return out
	case t.hosted:
		return c.result(out, r, id, nil, &outcome{blocks: outputBlocks(results)})
	case known:
		return c.wait(out, text, &outcome{at: r.snapshot(), blocks: outputBlocks(results)})
	}
	if ok {
		e := eventText{by: search, id: slices.Clone(id), results: slices.Clone(results), at: r.snapshot()}
		e.text = slices.Clone(r.payload.AnyOf("action", "query"))
		c.events = append(c.events, e)
	}
	return out
}

package codex

import (
	"bytes"
	"hash/maphash"
	"slices"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage/foreign"
)

// Who says a text.
const (
	person    byte = 'p'
	assistant byte = 'a'
	thought   byte = 't' // of the assistant
	search    byte = 's' // the end of a web search
)

// early is what an event said and no item yet. The program writes most texts twice: in an event, for who watches, and in an
// item, for the model; which comes first depends on its version.
type early struct {
	by      byte
	text    rawjson.Value
	hash    uint64
	id      rawjson.Value // of a search, its action is the text
	results rawjson.Value
	at      record
}

var seed = maphash.MakeSeed()

// hashOf returns a hash of a text, but for white space around it, and of its speaker.
func hashOf(by byte, text []byte) uint64 {
	if by == thought {
		by = assistant
	}
	return maphash.Bytes(seed, bytes.TrimSpace(text))*2 + uint64(by&1)
}

// hear notes the texts of an item: one by one, and all together as an event has them. What events said of it is done with, and
// what they said before that no item has.
func (c *converter) hear(out []byte, by byte, contents ...rawjson.Value) []byte {
	var all []byte
	parts := 0
	for _, content := range contents {
		content.EachElement(func(block rawjson.Value, _ int) bool {
			if text, ok := block.Member("text").Bytes(); ok && len(text) > 0 {
				c.hearText(by, text)
				all = append(all, text...)
				parts++
			}
			return true
		})
	}
	if parts > 1 {
		c.hearText(by, all)
	}
	if parts == 0 || len(c.early) == 0 {
		return out
	}
	passed := len(c.early)
	for i := len(c.early) - 1; i >= 0; i-- {
		if _, ok := c.heard[c.early[i].hash]; ok && c.early[i].by != search {
			c.early, passed = slices.Delete(c.early, i, i+1), i
		}
	}
	if by == person {
		return out
	}
	return c.speak(out, passed)
}

// markup are the tags in an answer that the program reads and a person does not see: events have the text without them.
var markup = [...]string{"oai-mem-citation", "proposed_plan"}

// hearText notes the text of an item, in each form that events may have it in.
func (c *converter) hearText(by byte, text []byte) {
	c.heard[hashOf(by, text)] = struct{}{}
	for _, tag := range markup {
		if bytes.Contains(text, []byte("<"+tag+">")) {
			text = without(text, tag)
			c.heard[hashOf(by, text)] = struct{}{}
		}
	}
}

// without returns a text without each tag and its content. A tag that is not closed goes on to the end.
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

// says notes what an event says, unless an item said it.
func (c *converter) says(by byte, r *record, text rawjson.Value) {
	said, ok := text.Bytes()
	if !ok || len(said) == 0 {
		return
	}
	hash := hashOf(by, said)
	if _, ok := c.heard[hash]; !ok {
		c.early = append(c.early, early{by: by, text: slices.Clone(text), hash: hash, at: r.kept()})
	}
}

// speakAll makes entries of all that only events said.
func (c *converter) speakAll(out []byte) []byte { return c.speak(out, len(c.early)) }

// speak makes entries of the first n things that only events said.
func (c *converter) speak(out []byte, n int) []byte {
	for ; n > 0; n-- {
		e := c.early[0]
		c.early = c.early[1:]
		switch e.by {
		case person:
			out = c.asks(out, &e.at, textBlock(nil, e.text), false)
		case assistant:
			out = c.said(out, &e.at, textBlock(nil, e.text))
		case thought:
			out = c.said(out, &e.at, thinkingBlock(nil, e.text))
		case search:
			out = c.call(out, &e.at, e.id, rawjson.Value(`"web_search"`), e.text)
			out = c.result(out, &e.at, e.id, nil, &outcome{blocks: outputBlocks(e.results)})
		}
	}
	return out
}

// searched makes what it is of a call of the web search. Its id and what was found may be in the event before it.
func (c *converter) searched(out []byte, r *record, item foreign.Object, id rawjson.Value) []byte {
	i := c.earlySearch(id)
	args := item.AnyOf("action", "arguments", "input")
	if i < 0 {
		out = c.call(c.speakAll(out), r, id, rawjson.Value(`"web_search"`), args)
		if call, ok := id.Text(); ok {
			t := c.tools[call]
			t.hosted = true
			c.tools[call] = t
		}
		return out
	}
	out = c.speak(out, i)
	e := c.early[0]
	c.early = c.early[1:]
	out = c.call(out, r, e.id, rawjson.Value(`"web_search"`), args)
	return c.result(out, &e.at, e.id, nil, &outcome{blocks: outputBlocks(e.results)})
}

// earlySearch returns the place of a search that ended, of any one where the id is missing, -1 if there is none.
func (c *converter) earlySearch(id rawjson.Value) int {
	return slices.IndexFunc(c.early, func(e early) bool {
		return e.by == search && (!id.IsString() || string(id) == string(e.id))
	})
}

// event takes what only events say.
func (c *converter) event(out []byte, r *record) []byte {
	typ, _ := r.payload.Member("type").Text()
	switch typ {
	case "token_count":
		c.count(r.payload.Member("info"))
	case "task_started", "turn_started": // of a compaction, no person says anything first
		if c.open != nil {
			c.open.ended = true
		}
	case "user_message":
		out = c.settle(out)
		c.says(person, r, r.payload.Member("message"))
	case "agent_message":
		c.says(assistant, r, r.payload.Member("message"))
	case "agent_reasoning", "agent_reasoning_raw_content":
		c.says(thought, r, r.payload.Member("text"))
	case "turn_aborted":
		out = c.settle(out)
		if c.open != nil && !c.asked {
			c.open.stop = "aborted"
		}
	case "task_complete", "turn_complete":
		return c.settle(out)
	case "error":
		return c.failed(c.settle(out), r)
	case "thread_rolled_back":
		return c.rollBack(out, int(foreign.Count(r.payload.Member("num_turns"))), r.line)
	case "web_search_end":
		return c.searchEnded(out, r)
	case "mcp_tool_call_end", "dynamic_tool_call_response", "exec_command_end", "patch_apply_end":
		return c.toolEnded(out, r, typ)
	}
	return out
}

// searchEnded takes what was found on the web, or what was asked for where that is not told. Its call comes next, if it was
// not there.
func (c *converter) searchEnded(out []byte, r *record) []byte {
	id, results := r.payload.Member("call_id"), r.payload.AnyOf("results", "query")
	text, ok := id.Text()
	switch t, known := c.tools[text]; {
	case known && t.done:
		return out
	case t.hosted:
		return c.result(out, r, id, nil, &outcome{blocks: outputBlocks(results)})
	case known:
		return c.wait(out, text, &outcome{at: r.kept(), blocks: outputBlocks(results)})
	}
	if ok {
		args := r.payload.AnyOf("action", "query")
		c.early = append(c.early, early{by: search, text: slices.Clone(args), id: slices.Clone(id), results: slices.Clone(results), at: r.kept()})
	}
	return out
}

package codex

import (
	"bytes"
	"hash/maphash"
	"regexp"
	"slices"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// speaker is the speaker of a text, a part of its hash.
type speaker byte

// The speakers of texts.
const (
	person    speaker = 'p'
	assistant speaker = 'a'
	thought   speaker = 't' // of the assistant
	plan      speaker = 'n' // of the assistant
	search    speaker = 's' // the end of a web search
)

// event is an event without an item yet. The program writes most texts twice: in an event for viewers,
// and in an item for the model. Their order depends on its version.
type event struct {
	speaker speaker
	text    rawjson.Value // of a search, its action
	hash    uint64
	id      rawjson.Value // of a search
	results agents.Blocks
	at      agents.Origin
}

var seed = maphash.MakeSeed()

// maxEvents bounds the events that wait for an item. It comes within a few records.
const maxEvents = 256

// hashOf returns a hash of a text, without white space around it, and of its speaker.
func hashOf(by speaker, text []byte) uint64 {
	return maphash.Bytes(seed, bytes.TrimSpace(text)) ^ uint64(by)
}

// addTexts matches the texts of an item with events: one by one, and all together. It makes entries
// of earlier events that have no item, and reports whether an event has a text.
func (c *converter) addTexts(by speaker, contents ...rawjson.Value) (hasEvent bool) {
	if c.replay {
		return false
	}
	before := len(c.events)
	var all []byte
	parts := 0
	passed := len(c.events)
	for _, content := range contents {
		all = append(all, agents.ChatText(content)...)
		for block := range content.EachElement {
			if text, _ := block.Member("text").Bytes(); len(text) > 0 {
				passed = min(passed, c.match(by, text), c.matchPlans(by, text))
				parts++
			}
		}
	}
	if len(all) > 0 && parts != 1 {
		passed = min(passed, c.match(by, imageTag.ReplaceAll(all, nil)))
	}
	hasEvent = len(c.events) < before
	if len(all) > 0 && by != person {
		c.flushEvents(passed)
	}
	return hasEvent
}

// proposedPlan matches a plan in an answer.
var proposedPlan = regexp.MustCompile(`(?s)<proposed_plan>(.*?)(?:</proposed_plan>\n?|$)`)

// markup matches the parts of an answer that only the program reads: events have the text without
// them. An open tag reaches to the end.
var markup = [...]*regexp.Regexp{
	regexp.MustCompile(`(?s)<oai-mem-citation>.*?(</oai-mem-citation>|$)`),
	proposedPlan,
}

// matchPlans matches the plans in a text of an answer with items of the program, and returns the
// first index as match does.
func (c *converter) matchPlans(by speaker, text []byte) int {
	first := len(c.events)
	if by != assistant {
		return first
	}
	for _, found := range proposedPlan.FindAllSubmatch(text, -1) {
		first = min(first, c.match(plan, found[1]))
	}
	return first
}

// match removes the event with the text of an item, in one of its forms, and returns its index. If
// there is none, one that follows is the item's.
func (c *converter) match(by speaker, text []byte) int {
	hashes := []uint64{hashOf(by, text)}
	for _, part := range markup {
		if part.Match(text) {
			text = part.ReplaceAll(text, nil)
			hashes = append(hashes, hashOf(by, text))
		}
	}
	i := slices.IndexFunc(c.events, func(e event) bool { return slices.Contains(hashes, e.hash) })
	if i >= 0 {
		c.events = slices.Delete(c.events, i, i+1)
		return i
	}
	for _, hash := range hashes {
		c.itemTexts[hash]++
	}
	return len(c.events)
}

// addEvent adds the text of an event, unless an item of the program with it was first.
func (c *converter) addEvent(by speaker, text rawjson.Value) {
	said, _ := text.Bytes()
	hash := hashOf(by, said)
	c.itemsAhead[hash]--
	if c.itemsAhead[hash] < 0 {
		c.addText(by, text)
	}
}

// addText adds a text of an event, unless an item of the model has it. Before a person's text it
// settles earlier events.
func (c *converter) addText(by speaker, text rawjson.Value) {
	if by == person {
		c.settle()
	}
	said, ok := text.Bytes()
	if !ok || len(said) == 0 {
		return
	}
	hash := hashOf(by, said)
	items := c.itemTexts[hash]
	c.itemTexts[hash] = max(0, items-1)
	if items == 0 {
		c.await(event{speaker: by, text: slices.Clone(text), hash: hash, at: c.Here()})
	}
}

// await lets an event wait for its item.
func (c *converter) await(e event) {
	c.events = append(c.events, e)
	c.flushEvents(len(c.events) - maxEvents)
}

// flushEvents makes entries of the first n events without an item.
func (c *converter) flushEvents(n int) {
	for ; n > 0; n-- {
		e := c.events[0]
		c.events = c.events[1:]
		c.Of(&e.at, func() {
			switch e.speaker {
			case person:
				c.beginTurn()
				c.User(textBlock(e.text))
			case assistant, plan:
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
		c.release(byPerson)
		c.ended = true
		clear(c.itemTexts)
		clear(c.itemsAhead)
	case "user_message":
		said := p.Member("message")
		kind := p.Member("kind") // of clients before 0.50
		if !kind.IsString() || kind.Is("plain") {
			c.named(said)
			c.promptedBy(said)
		}
		c.addEvent(person, said)
	case "agent_message":
		c.addEvent(assistant, p.Member("message"))
	case "agent_reasoning", "agent_reasoning_raw_content":
		c.addEvent(thought, p.Member("text"))
	case "turn_aborted":
		c.settle()
		if c.Open() != nil && !c.isPrompted {
			c.Open().Abort()
		}
	case "task_complete", "turn_complete": // it repeats the last answer
		last := p.Member("last_agent_message")
		said, _ := last.Bytes()
		if _, isRepeated := c.itemTexts[hashOf(assistant, said)]; !isRepeated {
			c.addEvent(assistant, last)
		}
		c.settle()
	case "error":
		c.settle()
		if message := p.Member("message"); message.IsString() {
			c.answer().Error(message)
		}
	case "web_search_end":
		c.release(byPerson)
		c.searchResult(p.Member("call_id"), p, size)
	case mcpEvent, dynamicEvent, execEvent, patchEvent, madeImageEvent:
		c.release(byPerson)
		c.toolResult(p, typ, size)
	case "item_completed":
		c.completed(agents.Read(p.Member("item")), size)
	default:
		c.threadEvent(typ, p)
	}
}

// threadEvent handles an event about the thread as a whole.
func (c *converter) threadEvent(typ string, p agents.Object) {
	switch typ {
	case "thread_goal_updated":
		c.goalUpdated(p.Member("goal"))
	case "thread_name_updated":
		if name, _ := p.Member("thread_name").Text(); !c.isTitled {
			c.Named(name)
		}
	case "thread_rolled_back": // the last turns stay as a branch
		c.settle()
		c.Close()
		all := int64(len(c.turns))
		if n := max(0, all-agents.Count(p.Member("num_turns"))); n < all {
			c.HangOn(c.turns[n], c.line)
			c.turns = c.turns[:n]
			c.hidden = nil
		}
	}
}

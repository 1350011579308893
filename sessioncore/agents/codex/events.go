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
	trimmed := bytes.TrimSpace(text)
	return maphash.Bytes(seed, trimmed) ^ uint64(by)
}

// addTexts matches the texts of an item with events: one by one, and all together. It makes entries
// of earlier events that have no item, but not before a person's, and reports whether an event has a text. Repetitions
// after a compaction have no events.
func (c *converter) addTexts(by speaker, contents ...rawjson.Value) (hasEvent bool) {
	if c.replay {
		return false
	}
	before := len(c.events)
	passed := before // events before this index have no item
	var all []byte
	parts := 0
	for _, content := range contents {
		all = append(all, agents.ChatText(content)...)
		for block := range content.EachElement {
			text, _ := block.Member("text").Bytes()
			if len(text) > 0 {
				passed = min(passed, c.match(by, text), c.matchPlans(by, text))
				parts++
			}
		}
	}
	if len(all) > 0 && parts != 1 { // else the only part is all
		withoutTags := imageTag.ReplaceAll(all, nil)
		passed = min(passed, c.match(by, withoutTags))
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
// smallest index as match does. Other speakers have no plans.
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
// there is none, it returns the number of events, and an event that follows is the item's.
func (c *converter) match(by speaker, text []byte) int {
	hashes := []uint64{hashOf(by, text)}
	for _, part := range markup {
		if part.Match(text) {
			text = part.ReplaceAll(text, nil)
			hashes = append(hashes, hashOf(by, text))
		}
	}
	i := slices.IndexFunc(c.events, func(e event) bool {
		return slices.Contains(hashes, e.hash)
	})
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

// addText adds a text of an event, unless it is empty or an item of the model has it: it waits for its item. Before a
// person's text it settles earlier events.
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

// await lets an event wait for its item. If too many wait, the first ones become entries.
func (c *converter) await(e event) {
	c.events = append(c.events, e)
	c.flushEvents(len(c.events) - maxEvents)
}

// flushEvents makes entries of the first n events, as they have no item. It does nothing if n is not above 0.
func (c *converter) flushEvents(n int) {
	for range n {
		e := c.events[0]
		c.events = c.events[1:]
		c.Of(&e.at, func() { c.eventEntry(&e) })
	}
}

// eventEntry makes the entry of an event without an item.
func (c *converter) eventEntry(e *event) {
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
}

// event handles an event, in a record of size bytes.
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
		answer := c.Open()
		if answer != nil && !c.isPrompted { // else the open answer is of the turn before
			answer.Abort()
		}
	case "task_complete", "turn_complete":
		c.addLastAnswer(p.Member("last_agent_message"))
		c.settle()
	case "error":
		c.settle()
		message := p.Member("message")
		if message.IsString() {
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

// addLastAnswer adds the text of the last answer that the end of a turn repeats, unless an item has or had it.
func (c *converter) addLastAnswer(text rawjson.Value) {
	said, _ := text.Bytes()
	_, isRepeated := c.itemTexts[hashOf(assistant, said)] // its number may be 0 again
	if !isRepeated {
		c.addEvent(assistant, text)
	}
}

// threadEvent handles an event about the thread as a whole. Other types change nothing.
func (c *converter) threadEvent(typ string, p agents.Object) {
	switch typ {
	case "thread_goal_updated":
		c.goalUpdated(p.Member("goal"))
	case "thread_name_updated":
		if c.isTitled { // the program's list counts
			return
		}
		name, _ := p.Member("thread_name").Text()
		c.Named(name)
	case "thread_rolled_back":
		c.rollBack(agents.Count(p.Member("num_turns")))
	}
}

// rollBack makes the next entry hang on the parent of the first one of the last turns, which stay as a branch.
func (c *converter) rollBack(turns int64) {
	c.settle()
	c.Close()
	all := int64(len(c.turns))
	left := max(0, all-turns)
	if left < all {
		c.HangOn(c.turns[left], c.line)
		c.turns = c.turns[:left]
		c.hidden = nil
	}
}

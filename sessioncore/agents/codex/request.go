package codex

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// This file tells the words of a person from the program's (docs/format-codex.md): in messages in the
// person's name, and in records beside them.

// author is the author of a message in the person's name.
type author uint8

const (
	byPerson  author = iota
	byProgram        // all of it
	byBoth           // parts of it are the program's; for the client it begins no turn
	byEither         // it is one tag from the first to the last character; later records decide
)

// contexts begin the program's messages in the person's name.
var contexts = [...]string{"# agents.md instructions", "<environment_context>", "<user_instructions>", "<skill>",
	"<turn_aborted>", "<user_shell_command>", "<subagents>", "<subagent_notification>", "<hook_prompt ",
	"<hook_prompt>", "<extension_context>", "<goal_context>", "<codex_internal_context ",
	"<codex_internal_context>", "<recommended_plugins>",
	"<skills_instructions>", "<apps_instructions>", "<plugins_instructions>", "<permissions instructions>",
	"<multi_agent_mode>", "<model_switch>", "<collaboration_mode>", "<personality_spec>"}

// isContext reports whether a message in the person's name is the program's.
func isContext(content rawjson.Value) bool {
	by := authorOf(content)
	return by == byProgram || by == byBoth
}

// authorOf returns the author of a message, by its texts. Words behind a tag of the program are the
// person's.
func authorOf(content rawjson.Value) author {
	known := 0  // texts of the program
	tags := 0   // texts that may be
	others := 0 // other parts, which are the person's
	for block := range content.EachElement {
		text, isText := block.Member("text").Bytes()
		text = bytes.TrimSpace(text)
		switch {
		case !isText:
			others++
		case len(text) == 0, isImageTag(text):
		case isContextText(text):
			known++
		case isOneTag(text):
			tags++
		default:
			others++
		}
	}
	switch {
	case known > 0 && others == 0:
		return byProgram
	case known > 0:
		return byBoth
	case tags > 0 && others == 0:
		return byEither
	}
	return byPerson
}

// isContextText reports whether a text is a known one of the program, from the first to the last
// character.
func isContextText(text []byte) bool {
	head := text[:min(len(text), mostBegin)]
	begin := contextOf(string(head))
	if begin == "" {
		return false
	}
	end := []byte("</" + strings.Trim(begin, "<> ") + ">")
	hasWordsBehind := bytes.Contains(text, end) && !bytes.HasSuffix(text, end)
	return !hasWordsBehind
}

// mostBegin is the length of the longest one of contexts.
const mostBegin = 32

// contextOf returns the beginning of a text that contexts has, or "".
func contextOf(text string) string {
	for _, begin := range contexts {
		if len(text) >= len(begin) && strings.EqualFold(text[:len(begin)], begin) {
			return begin
		}
	}
	return ""
}

// isImageTag reports whether a text is one of those around an image.
func isImageTag(text []byte) bool {
	found := imageTag.FindIndex(text)
	return found != nil && found[0] == 0 && found[1] == len(text)
}

// openTag matches a tag at the beginning of a text, and its name.
var openTag = regexp.MustCompile(`^<([a-z][a-z0-9_-]*)( [^<>]*)?>`)

// isOneTag reports whether a text is one tag with its content, from the first to the last character.
func isOneTag(text []byte) bool {
	found := openTag.FindSubmatch(text)
	if found == nil {
		return false
	}
	name := string(found[1])
	attributes := string(found[2]) // the program repeats them at the end of some tags
	for _, closed := range [...]string{name, name + attributes} {
		end := []byte("</" + closed + ">")
		firstEnd := bytes.Index(text, end)
		if firstEnd == len(text)-len(end) {
			return true
		}
	}
	return false
}

// authorIn returns the author of a message: as the program noted it for each part of the content, else
// by its texts and the events around it.
func (c *converter) authorIn(item agents.Object, hasEvent bool) author {
	content := item.Member("content")
	kinds := item.Member("internal_chat_message_metadata_passthrough").Member("content_item_kinds")
	by, isNoted := authorNoted(kinds)
	if isNoted {
		return by
	}
	by = authorOf(content)
	text := agents.ChatText(content)
	switch {
	case strings.HasPrefix(strings.TrimSpace(text), delegationBegin):
		return delegationAuthor(text)
	case by != byEither:
		return by
	case hasEvent:
		return byPerson
	case c.hasPersonsEvent():
		return byProgram // the event names other words
	}
	return byEither
}

// hasPersonsEvent reports whether an event with words of the person has no item yet.
func (c *converter) hasPersonsEvent() bool {
	return slices.ContainsFunc(c.events, func(e event) bool {
		return e.speaker == person
	})
}

// authorNoted returns the author by the kinds of the parts of a content. isNoted is false if there are none, or one
// does not tell.
func authorNoted(kinds rawjson.Value) (by author, isNoted bool) {
	persons := 0 // parts of the person
	all := 0
	for v := range kinds.EachElement {
		kind, _ := v.Text()
		if kind == "" || kind == "unknown" {
			return 0, false
		}
		all++
		if strings.HasPrefix(kind, "user.") {
			persons++
		}
	}
	switch persons {
	case 0:
		return byProgram, all > 0
	case all:
		return byPerson, true
	}
	return byBoth, true
}

// undecided are the messages with an author that later records tell, and messages of the program behind
// them.
type undecided struct {
	messages []undecidedMessage
	size     int // of their texts, in bytes
}

type undecidedMessage struct {
	item rawjson.Value // with the members that decide needs
	by   author        // byEither or, for one behind these, byProgram
	at   agents.Origin
}

const (
	// maxUndecided bounds the undecided messages, and maxUndecidedBytes their bytes.
	maxUndecided      = 64
	maxUndecidedBytes = 1 << 20
)

// hold keeps a message that is by an author, byEither or byProgram, until later records tell the author of those that
// are by either. Too many are the person's.
func (c *converter) hold(item agents.Object, by author) {
	isFull := len(c.undecided.messages) == maxUndecided || c.undecided.size > maxUndecidedBytes
	if isFull {
		c.release(byPerson)
	}
	text := rawjson.Value(`{"type":"message"`)
	for _, key := range [...]string{"role", "author", "content"} {
		text = agents.AppendMember(text, key, item.Member(key))
	}
	text = append(text, '}')
	c.undecided.size += len(text)
	c.undecided.messages = append(c.undecided.messages, undecidedMessage{
		item: text,
		by:   by,
		at:   c.Here(),
	})
}

// takeUndecided returns the undecided messages, which are none afterwards.
func (c *converter) takeUndecided() []undecidedMessage {
	messages := c.undecided.messages
	c.undecided = undecided{}
	return messages
}

// release makes entries of the undecided messages. Those that are by either are by an author.
func (c *converter) release(by author) {
	for _, m := range c.takeUndecided() {
		c.decide(&m, by)
	}
}

// decide makes the entry of a message, which is by an author if it may be by either.
func (c *converter) decide(m *undecidedMessage, by author) {
	c.Of(&m.at, func() {
		item := agents.Read(m.item)
		switch {
		case m.by == byEither:
			c.say(item, by)
		case item.Member("role").Is("user"):
			c.say(item, byProgram)
		default:
			blocks := contentBlocks(item.Member("content"))
			c.custom("message", item, blocks, isForModel)
		}
	})
}

// named handles words of the person in an event: of the undecided messages, only one with these
// words is the person's.
func (c *converter) named(words rawjson.Value) {
	text := strings.TrimSpace(agents.ChatText(words))
	for _, m := range c.takeUndecided() {
		by := byProgram
		held := agents.ChatText(m.item.Member("content"))
		if strings.TrimSpace(held) == text {
			by = byPerson
		}
		c.decide(&m, by)
	}
}

// say makes an entry of a message in the person's name.
func (c *converter) say(item agents.Object, by author) {
	content := item.Member("content")
	blocks := contentBlocks(content)
	switch by {
	case byProgram:
		c.noteGoal(agents.ChatText(content))
		c.ended = true
		c.Context(blocks)
	case byBoth:
		c.promptedBy(content)
		c.settle()
		c.ended = true
		c.User(blocks)
	default:
		c.promptedBy(content)
		c.settle()
		c.beginTurn()
		c.User(blocks)
	}
}

// goal is the aim of a thread.
type goal struct {
	objective string
	created   string // JSON, "" where no record says it
	call      string // the arguments of the last call of the model that may set one
}

// maxGoalCall bounds the arguments that are kept to find a goal of the model in them.
const maxGoalCall = 64 << 10

// noteCall keeps the arguments of a call that may set a goal of the model itself: such a goal is not the person's.
func (c *converter) noteCall(name, args rawjson.Value) {
	if len(args) > maxGoalCall {
		return
	}
	namesGoal := bytes.Contains(name, []byte("goal")) || bytes.Contains(args, []byte("goal("))
	if !namesGoal {
		return
	}
	text, isText := args.Text()
	if !isText {
		text = string(args)
	}
	c.goal.call = text
}

// goalBegins begin the program's messages with a goal, and goalTags are around the goal in them.
var (
	goalBegins = []string{"<goal_context>", `<codex_internal_context source="goal">`}
	goalTags   = []string{"objective", "untrusted_objective"}
)

// noteGoal sets the goal in a message of the program, if it has one.
func (c *converter) noteGoal(text string) {
	text = strings.TrimSpace(text)
	isBegin := func(begin string) bool {
		return strings.HasPrefix(text, begin)
	}
	if !slices.ContainsFunc(goalBegins, isBegin) {
		return
	}
	for _, tag := range goalTags {
		escaped := agents.Between(text, "<"+tag+">", "</"+tag+">")
		objective := strings.TrimSpace(unescaped.Replace(escaped))
		c.setGoal(objective, "")
	}
}

// unescaped takes back the program's escapes in words that it puts into a tag.
var unescaped = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

// goalUpdated handles the goal of a thread in an event.
func (c *converter) goalUpdated(v rawjson.Value) {
	objective, _ := v.Member("objective").Text()
	c.setGoal(rawjson.TrimSpace(objective), string(v.AnyOf("createdAt", "created_at")))
}

// setGoal makes an entry of a goal that a person set, once. created is the time in the record, or "".
func (c *converter) setGoal(objective, created string) {
	if objective == "" {
		return
	}
	isTimeKnown := created != "" && c.goal.created != ""
	isOtherTime := isTimeKnown && created != c.goal.created
	isSame := objective == c.goal.objective && !isOtherTime
	c.goal.objective = objective
	if created != "" {
		c.goal.created = created
	}
	isPrompt := c.prompted == hashOf(person, []byte(objective)) // the person's last message has it
	if isSame || isPrompt || c.goal.isModels() {
		return
	}
	c.release(byProgram)
	c.Prompted(objective)
	c.ended = true
	c.Asked("codex", textBlock(agents.Quoted(objective)))
}

// isModels reports whether the model itself set the goal, by a call.
func (g *goal) isModels() bool {
	if strings.Contains(g.call, g.objective) {
		return true
	}
	quoted := string(agents.Quoted(g.objective))
	escaped := quoted[1 : len(quoted)-1] // as in JSON
	return strings.Contains(g.call, escaped)
}

// speech makes an entry of words that were spoken: they are not sent to the thread's model.
func (c *converter) speech(item agents.Object) {
	text := item.Member("text")
	if !item.Member("type").Is("transcript_segment") || !text.IsString() || text.Is("") {
		return
	}
	c.ended = true
	role := item.Member("role")
	switch {
	case role.Is("user"):
		c.release(byProgram)
		said, _ := text.Text()
		c.Prompted(said)
		c.Asked("codex", textBlock(text))
	case role.Is("assistant"):
		c.release(byPerson)
		c.NotSent("codex/voice", textBlock(text))
	}
}

// delegationBegin begins a message of a voice call's model that passes on a person's request. One with
// delegationTail only has the end of the talk.
const (
	delegationBegin = "<realtime_delegation>"
	delegationTail  = "<source>transcript_tail_flush</source>"
)

// delegationAuthor returns the author of such a message: the program where it only has the end of the talk.
func delegationAuthor(text string) author {
	if strings.Contains(text, delegationTail) {
		return byProgram
	}
	return byPerson
}

// requests are the headings of the prompt where an editor adds the person's view before it, which
// begins with one of views.
var (
	requests = []string{"## My request for Codex:", "## My request:"}
	views    = []string{"# Context from my IDE setup", "# Files mentioned by the user", "<in-app-browser-context"}
)

// requestIn returns the trimmed request of the person in a message of an editor. isFound is false for other messages.
func requestIn(text string) (words string, isFound bool) {
	isView := func(begin string) bool {
		return strings.HasPrefix(text, begin)
	}
	_, words, isFound = strings.Cut(text, requests[0])
	if !isFound && slices.ContainsFunc(views, isView) {
		_, words, isFound = strings.Cut(text, requests[1])
	}
	return rawjson.TrimSpace(words), isFound
}

// typed implements agents.Agent.Typed: the words behind the program's texts, in a message of an editor,
// or passed on by the model of a voice call.
func typed(text string) (words string, isWrapped bool) {
	text = rawjson.TrimSpace(text)
	if isContextText([]byte(text)) || isImageTag([]byte(text)) {
		return "", true
	}
	begin := contextOf(text)
	if begin != "" {
		end := "</" + strings.Trim(begin, "<> ") + ">"
		_, words, isWrapped = strings.Cut(text, end)
		return rawjson.TrimSpace(words), isWrapped
	}
	if strings.HasPrefix(text, delegationBegin) {
		input := agents.Between(text, "<input>", "</input>")
		return rawjson.TrimSpace(unescaped.Replace(input)), input != ""
	}
	return requestIn(text)
}

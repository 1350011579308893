package opencode

import (
	"fmt"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// converter makes the entries of a session's text (docs/format.md, OpenCode).
type converter struct {
	*agents.Builder
	created    int64             // of the session, in ms: an older message is a copy
	before     map[string]string // the parents of the messages' first entries, by the messages' ids
	end        map[string]string // the last entries of messages, by their ids
	live       string            // the parent of the next message that was not removed
	isRemoved  bool              // the last message was removed
	isCommand  bool              // the next answer is a command that the person ran
	compaction agents.Usage      // tokens of a summary before the first answer
}

// newConverter returns the function that makes the entries of each line of a text, in their order.
func newConverter(b *agents.Builder) func(*agents.Record) {
	b.InnerKey = "info"
	b.Named(b.About.Title)
	c := &converter{Builder: b, before: map[string]string{}, end: map[string]string{}}
	return c.record
}

// record makes the entries of a line.
func (c *converter) record(r *agents.Record) {
	session := r.Member("session")
	revert := r.Member("revert")
	switch {
	case session.IsObject():
		c.begin(agents.Read(session))
	case revert.IsString():
		id, _ := revert.Text()
		parent, isKnown := c.before[id]
		if isKnown { // the client left the message and all behind it
			c.Hang(parent)
		}
	case r.Inner.Member("role").IsString():
		c.message(r)
	}
}

// begin makes the header.
func (c *converter) begin(session agents.Object) {
	c.created = agents.Count(session.Member("created"))
	h := agents.Header{
		ID:      session.Member("id"),
		Time:    agents.TimeText(c.created),
		Cwd:     session.Member("directory"),
		Version: session.Member("version"),
	}
	unread := agents.Count(session.Member("unread"))
	if unread > 0 {
		h.Problems = append(h.Problems, fmt.Sprintf("%d messages in the table %s, of a newer client, are not read", unread, laterMessages))
	}
	if session.Member("damaged").Truthy() {
		h.Problems = append(h.Problems, "the database is damaged: what can be read of the session is shown")
	}
	if c.Side {
		h.Subagent = agents.Quoted("subagent")
	}
	c.Begin(h)
}

// message makes the entries of a message, in their place.
func (c *converter) message(r *agents.Record) {
	id, _ := r.Member("id").Text()
	c.place(r)
	c.before[id] = c.At()
	created := agents.Count(r.Inner.Member("time").Member("created"))
	isUser := r.Inner.Member("role").Is("user")
	usage := agents.Usage{}
	if !isUser {
		usage = usageOf(r.Inner.Member("tokens"))
	}
	entry := ""
	var timeText rawjson.Value
	isUnused := usage == agents.Usage{}
	if isUnused { // as are all that were handed over
		entry, timeText = handedIn(r.Member("parts"))
	}
	isCopy := created < c.created && entry == ""
	if entry == "" {
		entry = id
		timeText = agents.TimeText(created)
	}
	c.From(entry, timeText)
	switch {
	case isUser:
		c.user(r.Member("parts"))
	case isCopy && c.Facts: // a bill has it in the fork's origin
	default:
		c.answer(r, id, created, usage)
	}
	c.end[id] = c.At()
}

// place sets the parent of a message: for a removed one the message that was before it when it came, for the first
// other one behind it the last one that was not removed. Else it is the last entry.
func (c *converter) place(r *agents.Record) {
	wasRemoved := c.isRemoved
	c.isRemoved = r.Member("removed").Truthy()
	if !wasRemoved {
		c.live = c.At()
	}
	if !c.isRemoved {
		if wasRemoved {
			c.Hang(c.live)
		}
		return
	}
	after, _ := r.Member("after").Text()
	end, isKnown := c.end[after]
	if isKnown || after == "" { // after none it is a root
		c.Hang(end)
	}
}

// handedIn returns the id and the time of the entry that a message was in the session from which it was
// handed over, "" for none.
func handedIn(parts rawjson.Value) (id string, time rawjson.Value) {
	for p := range parts.EachElement {
		metadata := agents.Read(p.Member("data").Member("metadata"))
		id, time = agents.EntryIn(metadata)
		if id != "" {
			break
		}
	}
	return id, time
}

// eachPart calls f for each part of a message, with its type. Parts that Kilo Code shows for a moment only are left out.
func eachPart(parts rawjson.Value, f func(id rawjson.Value, kind string, data agents.Object)) {
	for p := range parts.EachElement {
		data := agents.Read(p.Member("data"))
		kind, _ := data.Member("type").Text()
		if !data.Member("metadata").Member("kilocode.lifecycle").Is("transient") {
			f(p.Member("id"), kind, data)
		}
	}
}

// executed begins the words of the client for a command that the person ran.
const executed = "The following tool was executed by the user"

// user makes the entries of a prompt, and of the client's additions to it. A message that only starts a
// compaction, or a command of the person, has none.
func (c *converter) user(parts rawjson.Value) {
	var shown, added agents.Blocks
	var prompt strings.Builder
	c.isCommand = false
	eachPart(parts, func(_ rawjson.Value, kind string, data agents.Object) {
		text := data.Member("text")
		words, _ := text.Text()
		isText := kind == "text"
		isAdded := isText && data.Member("synthetic").Truthy()
		switch {
		case isAdded && strings.HasPrefix(words, executed):
			c.isCommand = true
		case isAdded:
			added.Text(text)
		case isText:
			prompt.WriteString(words)
			shown.Text(text)
		case kind == "file":
			shown.ImageURL(data.Member("url"))
		}
	})
	if len(shown) > 0 {
		c.Prompted(prompt.String())
		c.User(shown)
	}
	if len(added) > 0 {
		c.Custom("opencode/context", added, false)
	}
}

// answer makes the entries of a message of the model, created at a time in ms: of an answer and the results of its calls, of a
// summary, or of a command, which has no tokens.
func (c *converter) answer(r *agents.Record, id string, created int64, usage agents.Usage) {
	parts := r.Member("parts")
	hasTokens := usage != agents.Usage{}
	prompt := usage.Input + usage.CacheRead + usage.CacheWrite
	if created < c.created {
		usage = agents.Usage{} // they count in the fork's origin
	}
	mayBeCommand := c.isCommand && !hasTokens
	if mayBeCommand && c.command(parts) {
		return
	}
	if r.Inner.Member("summary").Truthy() {
		c.summary(parts, usage, prompt)
		return
	}
	c.Model(r.Inner.Member("modelID"))
	a := c.Answer(id)
	eachPart(parts, func(_ rawjson.Value, kind string, data agents.Object) {
		switch kind {
		case "reasoning":
			a.Thinking(data.Member("text"), nil)
		case "text":
			a.Text(data.Member("text"))
		case "file":
			a.ImageURL(data.Member("url"))
		case "tool":
			input := data.Member("state").Member("input")
			a.Call(data.Member("callID"), data.Member("tool"), input)
		}
	})
	a.Count(usage.Plus(c.compaction))
	c.compaction = agents.Usage{}
	if created >= c.created {
		setCost(a, r.Inner.Member("cost"))
	}
	c.fail(a, agents.Read(r.Inner.Member("error")))
	eachPart(parts, func(id rawjson.Value, kind string, data agents.Object) {
		if kind == "tool" {
			c.result(id, data)
		}
	})
}

// setCost sets the recorded cost of an answer, if there is one.
func setCost(a *agents.Answer, cost rawjson.Value) {
	member := costMember(cost)
	if len(member) > 0 {
		a.Cost(member)
	}
}

// fail ends an answer with an error, if it has one.
func (c *converter) fail(a *agents.Answer, failure agents.Object) {
	if len(failure) == 0 {
		return
	}
	a.Error(failure.Member("data").Member("message"))
	if failure.Member("name").Is("MessageAbortedError") {
		a.Abort()
	}
}

// usageOf returns the tokens of an answer, the zero Usage for none. The client's input is without the tokens of the cache, and
// its output without the ones of thoughts.
func usageOf(tokens rawjson.Value) (u agents.Usage) {
	reasoning := int64(0)
	for m := range tokens.EachMember {
		switch {
		case m.KeyIs("input"):
			u.Input = agents.Count(m.Value)
		case m.KeyIs("output"):
			u.Output = agents.Count(m.Value)
		case m.KeyIs("reasoning"):
			reasoning = agents.Count(m.Value)
		case m.KeyIs("cache"):
			u.CacheRead = agents.Count(m.Value.Member("read"))
			u.CacheWrite = agents.Count(m.Value.Member("write"))
		}
	}
	u.Output += reasoning
	u.Total = u.Input + u.Output + u.CacheRead + u.CacheWrite
	return u
}

// result makes the entry of the result of a call, a part with an id, once it has one.
func (c *converter) result(id rawjson.Value, data agents.Object) {
	state := agents.Read(data.Member("state"))
	hasFailed := state.Member("status").Is("error")
	if !hasFailed && !state.Member("status").Is("completed") {
		return
	}
	tool := data.Member("tool")
	call := data.Member("callID")
	metadata := state.Member("metadata")
	name, timeText := agents.EntryIn(agents.Read(metadata)) // if it was handed over
	if name == "" {
		name, _ = id.Text()
		ended := agents.Count(state.Member("time").Member("end"))
		timeText = agents.TimeText(ended)
	}
	c.From(name, timeText)
	shown := agents.ToolResult{
		Call:    call,
		Details: detailsOf(tool, metadata),
		IsError: hasFailed || tool.Is("invalid"), // the client's tool in the place of a call that is not valid
	}
	side, _ := metadata.Member("sessionId").Text()
	if agents.IsSubagent(side) {
		shown.Session = agents.Subagents + "/" + side + ending
	}
	shown.Content.Text(state.AnyOf("output", "error"))
	for file := range state.Member("attachments").EachElement {
		shown.Content.ImageURL(file.Member("url"))
	}
	c.Tool(call, tool)
	c.Result(shown)
}

// detailsOf returns the details of a result. omp has a subagent's bill in their member usage; no client of ours does, so that
// such a member is left out.
func detailsOf(tool, metadata rawjson.Value) rawjson.Value {
	if tool.Is("task") && !metadata.Member("usage").Missing() {
		return rawjson.SetMembers(metadata, []rawjson.Field{{Key: "usage"}})
	}
	return metadata
}

// command makes the entry of a command that the person ran, and reports whether there is one. Only the first call is it.
func (c *converter) command(parts rawjson.Value) (isMade bool) {
	eachPart(parts, func(_ rawjson.Value, kind string, data agents.Object) {
		state := data.Member("state")
		command, hasCommand := state.Member("input").Member("command").Text()
		if kind != "tool" || !hasCommand || isMade {
			return
		}
		isMade = true
		output, _ := state.Member("output").Text()
		c.Bash(command, output, state.Member("metadata").Member("exit"))
		c.Prompted("! " + command)
	})
	return isMade
}

// summary makes the entry of a compaction. Its tokens go to the answer before it, or else to the first one. prompt is the number
// of tokens in its prompt, also where these count in another session.
func (c *converter) summary(parts rawjson.Value, usage agents.Usage, prompt int64) {
	var text strings.Builder
	eachPart(parts, func(_ rawjson.Value, kind string, data agents.Object) {
		if kind == "text" {
			words, _ := data.Member("text").Text()
			text.WriteString(words)
		}
	})
	before := c.Open()
	if before != nil {
		before.Count(usage)
	} else {
		c.compaction = c.compaction.Plus(usage)
	}
	c.Compaction(agents.Quoted(text.String()), "", prompt)
}

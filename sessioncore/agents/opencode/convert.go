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
	created    int64             // of the session, in ms: what is older is a copy
	before     map[string]string // the entries on which messages hang
	end        map[string]string // the last entries of messages
	live       string            // the entry on which the next message hangs that was not removed
	isRemoved  bool              // the last message was removed
	isCommand  bool              // the next answer is a command that the person ran
	compaction agents.Usage      // tokens of a summary before the first answer
}

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
		at, ok := c.before[id]
		if ok {
			c.Hang(at)
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

// message makes the entries of a message. One that was removed hangs on the message before it at its
// time, the next one that was not on the last one that was not.
func (c *converter) message(r *agents.Record) {
	id, _ := r.Member("id").Text()
	isRemoved := r.Member("removed").Truthy()
	if !c.isRemoved {
		c.live = c.At()
	}
	switch {
	case isRemoved:
		after, _ := r.Member("after").Text()
		end, isKnown := c.end[after]
		if isKnown || after == "" {
			c.Hang(end)
		}
	case c.isRemoved:
		c.Hang(c.live)
	}
	c.isRemoved = isRemoved
	c.before[id] = c.At()
	at := agents.Count(r.Inner.Member("time").Member("created"))
	isUser := r.Inner.Member("role").Is("user")
	usage := agents.Usage{}
	if !isUser {
		usage = usageOf(r.Inner.Member("tokens"))
	}
	entry := ""
	var timeText rawjson.Value
	if usage == (agents.Usage{}) { // as of all that were handed over
		entry, timeText = handedIn(r.Member("parts"))
	}
	isCopy := at < c.created && entry == ""
	if entry == "" {
		entry = id
		timeText = agents.TimeText(at)
	}
	c.From(entry, timeText)
	switch {
	case isUser:
		c.user(r.Member("parts"))
	case isCopy && c.Facts: // a bill has it in the session of which this is a fork
	default:
		c.answer(r, id, at, usage)
	}
	c.end[id] = c.At()
}

// handedIn returns the id and the time of the entry that a message was in the session from which it was
// handed over, "" for none.
func handedIn(parts rawjson.Value) (id string, time rawjson.Value) {
	for p := range parts.EachElement {
		id, time = agents.EntryIn(agents.Read(p.Member("data").Member("metadata")))
		if id != "" {
			break
		}
	}
	return id, time
}

// eachPart calls f for each part of a message that is not only shown for a moment.
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

// user makes the entries of a prompt, and of what the client added to it. A message that only starts a
// compaction, or a command of the person, has none.
func (c *converter) user(parts rawjson.Value) {
	var shown, added agents.Blocks
	var prompt strings.Builder
	c.isCommand = false
	eachPart(parts, func(_ rawjson.Value, kind string, data agents.Object) {
		text := data.Member("text")
		said, _ := text.Text()
		switch {
		case kind == "text" && data.Member("synthetic").Truthy() && strings.HasPrefix(said, executed):
			c.isCommand = true
		case kind == "text" && data.Member("synthetic").Truthy():
			added.Text(text)
		case kind == "text":
			prompt.WriteString(said)
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

// answer makes the entries of an answer and of the results of its calls, of a summary, or of a command, which has no
// tokens.
func (c *converter) answer(r *agents.Record, id string, at int64, usage agents.Usage) {
	parts := r.Member("parts")
	hasTokens := usage != agents.Usage{}
	prompt := usage.Input + usage.CacheRead + usage.CacheWrite
	if at < c.created {
		usage = agents.Usage{} // it counts in the session of which this is a fork
	}
	switch {
	case c.isCommand && !hasTokens && c.command(parts):
		return
	case r.Inner.Member("summary").Truthy():
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
			a.Call(data.Member("callID"), data.Member("tool"), data.Member("state").Member("input"))
		}
	})
	a.Count(usage.Plus(c.compaction))
	c.compaction = agents.Usage{}
	c.cost(a, r.Inner.Member("cost"), at)
	c.fail(a, agents.Read(r.Inner.Member("error")))
	eachPart(parts, func(id rawjson.Value, kind string, data agents.Object) {
		if kind == "tool" {
			c.result(id, data)
		}
	})
}

// cost sets the recorded cost of an answer.
func (c *converter) cost(a *agents.Answer, cost rawjson.Value, at int64) {
	if member := costMember(cost); len(member) > 0 && at >= c.created {
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

// usageOf returns the tokens of an answer. Its input is without those of the cache, and its output without
// the thoughts.
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

// result makes the entry of the result of a call, once it has one.
func (c *converter) result(id rawjson.Value, data agents.Object) {
	state := agents.Read(data.Member("state"))
	hasFailed := state.Member("status").Is("error")
	if !hasFailed && !state.Member("status").Is("completed") {
		return
	}
	name, timeText := agents.EntryIn(agents.Read(state.Member("metadata")))
	if name == "" {
		name, _ = id.Text()
		timeText = agents.TimeText(agents.Count(state.Member("time").Member("end")))
	}
	c.From(name, timeText)
	shown := agents.ToolResult{
		Call:    data.Member("callID"),
		Details: detailsOf(data.Member("tool"), state.Member("metadata")),
		IsError: hasFailed || data.Member("tool").Is("invalid"),
	}
	side, _ := state.Member("metadata").Member("sessionId").Text()
	if agents.IsSubagent(side) {
		shown.Session = agents.Subagents + "/" + side + ending
	}
	shown.Content.Text(state.AnyOf("output", "error"))
	for file := range state.Member("attachments").EachElement {
		shown.Content.ImageURL(file.Member("url"))
	}
	c.Tool(data.Member("callID"), data.Member("tool"))
	c.Result(shown)
}

// detailsOf returns the details of a result. No client reports a bill in them, so that a member in the place of one is none.
func detailsOf(tool, metadata rawjson.Value) rawjson.Value {
	if tool.Is("task") && !metadata.Member("usage").Missing() {
		return rawjson.SetMembers(metadata, []rawjson.Field{{Key: "usage"}})
	}
	return metadata
}

// command makes the entry of a command that the person ran, and reports whether there is one.
func (c *converter) command(parts rawjson.Value) (ok bool) {
	eachPart(parts, func(_ rawjson.Value, kind string, data agents.Object) {
		state := data.Member("state")
		command, isCommand := state.Member("input").Member("command").Text()
		if kind != "tool" || !isCommand || ok {
			return
		}
		ok = true
		output, _ := state.Member("output").Text()
		c.Bash(command, output, state.Member("metadata").Member("exit"))
		c.Prompted("! " + command)
	})
	return ok
}

// summary makes the entry of a compaction. Its tokens go to the answer before it. prompt is the number of
// those in its prompt, also where they count in another session.
func (c *converter) summary(parts rawjson.Value, usage agents.Usage, prompt int64) {
	var text strings.Builder
	eachPart(parts, func(_ rawjson.Value, kind string, data agents.Object) {
		if kind == "text" {
			said, _ := data.Member("text").Text()
			text.WriteString(said)
		}
	})
	if a := c.Open(); a != nil {
		a.Count(usage)
	} else {
		c.compaction = c.compaction.Plus(usage)
	}
	c.Compaction(agents.Quoted(text.String()), "", prompt)
}

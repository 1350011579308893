package gemini

import (
	"bytes"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// converter makes the entries of the records of one file, a log in which a message is replaced by a
// later one with its id (docs/format-gemini.md).
type converter struct {
	*agents.Builder
	root    *messagePlace            // before the first message
	live    *messagePlace            // the last message that the model is sent
	places  map[string]*messagePlace // all, by their ids and those of their copies
	known   map[uint64]*messagePlace // those with a text, by messagePlace.all
	last    *messagePlace            // the message made last, in the order of the file
	done    map[string]bool          // calls that have a result
	input   int64                    // tokens of the last answer's input
	begins  bool                     // copies may follow
	copying bool                     // messages may be copies
}

// messagePlace is where a message is in the tree.
type messagePlace struct {
	id     string        // of its first entry, or "" if it has none
	before *messagePlace // the message before it that the model is sent
	jump   *messagePlace // one further before it, see above
	depth  int           // how many messages are before it
	end    string        // the entry on which the next message hangs
	said   uint64        // saidBy
	all    uint64        // the hash of all texts up to it
	failed bool          // it ended with an error
}

// behind returns a place behind p.
func (p *messagePlace) behind(id string) *messagePlace {
	next := &messagePlace{id: id, before: p, jump: p, depth: p.depth + 1}
	if far := p.jump; far != nil && far.jump != nil && p.depth-far.depth == far.depth-far.jump.depth {
		next.jump = far.jump
	}
	return next
}

// above returns p or the place before it that has a depth, in steps that grow with the logarithm of its own:
// two jumps of one length are followed by one as long as both and one more.
func (p *messagePlace) above(depth int) *messagePlace {
	for p.depth > depth {
		if p.jump.depth >= depth {
			p = p.jump
		} else {
			p = p.before
		}
	}
	return p
}

func newConverter(b *agents.Builder) func(*agents.Record) {
	b.List = "messages"
	root := &messagePlace{}
	c := &converter{
		Builder: b,
		root:    root,
		live:    root,
		last:    &messagePlace{},
		places:  map[string]*messagePlace{},
		known:   map[uint64]*messagePlace{},
		done:    map[string]bool{},
	}
	return c.record
}

// record makes what it is of a record.
func (c *converter) record(record *agents.Record) {
	r := record.Object
	set := r.Member("$set")
	for _, facts := range [...]rawjson.Value{r.Member("summary"), set.Member("summary")} {
		title, _ := facts.Text()
		c.Named(title)
	}
	messages := set.Member("messages")
	switch {
	case messages.IsArray():
		c.replace(messages)
	case r.Member("$rewindTo").IsString():
		c.rewind(r.Member("$rewindTo"))
	case r.Member("id").IsString():
		c.message(r)
	case r.Member("sessionId").IsString():
		c.fork(r.Member("forkedFrom").Member("sessionId"))
		h := agents.Header{ID: r.Member("sessionId"), Time: r.Member("startTime"), Cwd: agents.Quoted(c.Moved)}
		kind := r.Member("kind")
		isLost := !c.Side && sessionOf(c.About.ID+ending) == "" // its session is gone
		if kind.Is("subagent") && !isLost {
			h.Subagent = kind
		}
		c.Begin(h)
		agents.EachPart(r.Member("messages"), func(m rawjson.Value) { c.message(agents.Read(m)) })
	}
}

// fork sets the session of which this one is a fork by sessionfs.
func (c *converter) fork(session rawjson.Value) {
	id, _ := session.Text()
	if id != "" && c.About.Parent == "" && !c.IsHeaded() {
		c.About.Parent = id
	}
}

// message makes the entries of a message, unless it stands before.
func (c *converter) message(r agents.Object) {
	id, ok := r.Member("id").Text()
	typ := r.Member("type")
	p := c.places[id]
	said := saidBy(r)
	c.copying = c.copying && r.Member("model").Missing()
	switch {
	case !ok || p != nil && !(typ.Is("gemini") && c.Replace(id)):
		return
	case typ.Is("error"):
		c.failed(r, id)
		return
	case p == nil && c.isCopy(r, id, said):
		return
	case p == nil:
		p = c.live.behind(id)
		c.places[id] = p
		c.live = p
	}
	c.note(p, said)
	c.From(id, r.Member("timestamp"))
	switch {
	case typ.Is("gemini"):
		c.answer(r, p)
		p.end = c.Open().End()
		return
	case typ.Is("user"):
		c.user(r, p)
	case typ.Is("info") && bytes.Contains(r.Member("content"), []byte(`"inlineData"`)): // the model is sent it
		shown, _ := userOf(r).blocks()
		c.Custom("gemini/info", shown, true)
	}
	p.end = c.At()
}

// user makes the entries of a message in the person's name.
func (c *converter) user(r agents.Object, p *messagePlace) {
	u := userOf(r)
	if u.results {
		agents.EachPart(u.content, c.lateResult)
		if u.text == "" { // images beside results are theirs
			return
		}
	}
	command, output, isCommand := u.command()
	shown, added := u.blocks()
	kind := "gemini/context"
	c.Prompted(u.title())
	cwd := agents.Between(u.context, "I'm currently working in the directory: ", "\n")
	if cwd == "" {
		cwd = agents.Between(u.context, "- **Workspace Directories:**\n  - ", "\n")
	}
	c.Directory(agents.Quoted(cwd))
	if len(shown) > 0 {
		kind = "gemini/content"
		c.last = p
		if isCommand {
			c.Bash(command, output, nil)
		} else {
			c.User(shown)
		}
	}
	if len(added) > 0 {
		c.Custom(kind, added, false)
	}
}

// lateResult makes an entry of a result whose call has none in its answer.
func (c *converter) lateResult(part rawjson.Value) {
	result := part.Member("functionResponse")
	if id, ok := result.Member("id").Text(); ok && !c.done[id] {
		c.done[id] = true
		c.Tool(result.Member("id"), result.Member("name"))
		shown := agents.ToolResult{Call: result.Member("id")}
		shown.IsError = !result.Member("response").Member("error").Missing()
		shown.Content.Response(part)
		c.Result(shown)
	}
}

// answer makes the entries of an answer and of the results of its calls.
func (c *converter) answer(r agents.Object, p *messagePlace) {
	content := r.Member("content")
	hasThoughts := false
	hasCalls := false
	agents.EachPart(content, func(part rawjson.Value) { // they can stand among the parts
		hasThoughts = hasThoughts || agents.IsThought(part)
		hasCalls = hasCalls || part.Member("functionCall").IsObject()
	})
	c.Model(r.Member("model"))
	a := c.Answer(p.id)
	if !hasThoughts {
		agents.EachPart(r.Member("thoughts"), func(t rawjson.Value) { a.Thinking(thoughtOf(t), nil) })
	}
	agents.EachPart(content, func(part rawjson.Value) {
		call := part.Member("functionCall")
		switch {
		case call.IsObject():
			a.Call(call.Member("id"), call.Member("name"), call.Member("args"))
		case agents.IsThought(part):
			a.Thinking(part.Member("text"), part.Member("thoughtSignature"))
		default:
			a.Part(part)
		}
	})
	a.Count(usageOf(r.Member("tokens")))
	if input := agents.Count(r.Member("tokens").Member("input")); input != 0 {
		c.input = input
	}
	agents.EachPart(r.Member("toolCalls"), func(v rawjson.Value) {
		call := agents.Read(v)
		if !hasCalls {
			a.Call(call.Member("id"), call.Member("name"), call.Member("args"))
		}
		c.result(call)
	})
	c.last = p
}

// thoughtOf returns the text of a thought.
func thoughtOf(t rawjson.Value) rawjson.Value {
	text, _ := t.Member("description").Text()
	if subject, _ := t.Member("subject").Text(); subject != "" {
		text = strings.TrimSpace("**" + subject + "** " + text)
	}
	return agents.Quoted(text)
}

// result makes an entry of the result of a call, once it has one.
func (c *converter) result(call agents.Object) {
	id, ok := call.Member("id").Text()
	result := call.Member("result")
	status := call.Member("status")
	failed := status.Is("error") || status.Is("cancelled")
	if !ok || result.Missing() && !failed && !status.Is("success") {
		return
	}
	c.done[id] = true
	shown := agents.ToolResult{Call: call.Member("id"), Time: call.Member("timestamp"), IsError: failed}
	shown.Content.Response(result)
	if display := call.Member("resultDisplay"); !display.Missing() && !display.Is("") {
		shown.Details = display
	}
	if side, _ := call.Member("agentId").Text(); side != "" && !strings.Contains(side, "/") {
		shown.Session = agents.Subagents + "/" + side + ending
	}
	c.Result(shown)
}

// failed makes an error the end of the answer before it, or an answer to the last message of the
// person, which the client may have taken out of the conversation.
func (c *converter) failed(r agents.Object, id string) {
	text := agents.Quoted(agents.TextIn(r.Member("content")))
	p := c.last
	at := c.At()
	if a := c.Open(); a != nil && a.ID == p.id && !p.failed {
		a.Error(text)
		p.failed = true
		return
	}
	c.Hang(p.end)
	c.From(id, r.Member("timestamp"))
	c.Answer(id).Error(text)
	c.places[id] = c.live.behind("")
	c.places[id].end = c.At()
	if p.end != at {
		c.Hang(at)
		return
	}
	p.end = c.At()
}

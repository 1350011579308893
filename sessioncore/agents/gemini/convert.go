package gemini

import (
	"bytes"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// converter makes the entries of the records of one file, a log in which a message is replaced by a
// later one with its id (docs/format.md, Gemini CLI).
type converter struct {
	*agents.Builder
	live   []*place          // the messages that the model is sent, in order
	places map[string]*place // all, by their ids
	last   *place            // the message of the person or the model made last, in the order of the file
	done   map[string]bool   // calls that have a result
	input  int64             // tokens of the last answer's input
}

// place is where a message is in the tree.
type place struct {
	id     string // its own, which its first entry has too
	before string // the entry on which it hangs
	end    string // the entry on which the next message hangs
	hash   uint64 // of its type and its text, 0 without a text
	answer bool
	failed bool // it ended with an error
}

func newConverter(b *agents.Builder) func(*agents.Record) {
	b.List = "messages"
	c := &converter{Builder: b, places: map[string]*place{}, done: map[string]bool{}}
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
	switch messages := set.Member("messages"); {
	case messages.IsArray():
		c.replace(messages)
	case r.Member("$rewindTo").IsString():
		c.rewind(r.Member("$rewindTo"))
	case r.Member("id").IsString():
		c.message(r)
	case r.Member("sessionId").IsString():
		h := agents.Header{ID: r.Member("sessionId"), Time: r.Member("startTime"), Cwd: agents.Quoted(c.Moved)}
		if kind := r.Member("kind"); kind.Is("subagent") {
			h.Subagent = kind
		}
		c.Begin(h)
		agents.EachPart(r.Member("messages"), func(m rawjson.Value) { c.message(agents.Read(m)) })
	}
}

// message makes the entries of a message, unless it stands before.
func (c *converter) message(r agents.Object) {
	id, ok := r.Member("id").Text()
	typ, p := r.Member("type"), c.places[id]
	switch {
	case !ok || p != nil && !(p.answer && typ.Is("gemini") && c.Replace(id)):
		return
	case typ.Is("error"):
		c.failed(r, id)
		return
	case p == nil:
		p = &place{id: id, before: c.At(), answer: typ.Is("gemini")}
		c.places[id], c.live = p, append(c.live, p)
	}
	c.From(id, r.Member("timestamp"))
	switch {
	case p.answer:
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
func (c *converter) user(r agents.Object, p *place) {
	u := userOf(r)
	command, output, isCommand := u.command()
	shown, added := u.blocks()
	c.Prompted(u.title())
	switch {
	case u.results:
		agents.EachPart(u.content, c.lateResult)
		return
	case u.isContext():
		c.Directory(agents.Quoted(u.directory()))
		c.Custom("gemini/context", shown, false)
		return
	case len(shown)+len(added) == 0:
		return
	case isCommand:
		c.Bash(command, output, nil)
	default:
		if c.User(shown); len(added) > 0 {
			c.Custom("gemini/content", added, false)
		}
	}
	p.hash, c.last = hashOf("user", u.text), p
}

// lateResult makes an entry of a result whose call has none in its answer.
func (c *converter) lateResult(part rawjson.Value) {
	result := part.Member("functionResponse")
	if id, ok := result.Member("id").Text(); ok && !c.done[id] {
		c.done[id] = true
		c.Tool(result.Member("id"), result.Member("name"))
		failed := !result.Member("response").Member("error").Missing()
		shown := agents.Result{Call: result.Member("id"), IsError: failed}
		shown.Content.Response(part)
		c.Result(shown)
	}
}

// answer makes the entries of an answer and of the results of its calls.
func (c *converter) answer(r agents.Object, p *place) {
	content, isWhole := r.Member("content"), false
	agents.EachPart(content, func(part rawjson.Value) { // thoughts and calls can stand among the parts
		isWhole = isWhole || agents.IsThought(part) || part.Member("functionCall").IsObject()
	})
	c.Model(r.Member("model"))
	a := c.Answer(p.id)
	if !isWhole {
		agents.EachPart(r.Member("thoughts"), func(t rawjson.Value) { a.Thinking(thoughtOf(t), nil) })
	}
	agents.EachPart(content, func(part rawjson.Value) {
		switch call := part.Member("functionCall"); {
		case call.IsObject():
			a.Call(call.Member("id"), call.Member("name"), call.Member("args"))
		case agents.IsThought(part):
			a.Thinking(part.Member("text"), part.Member("thoughtSignature"))
		default:
			a.Text(part.Member("text"))
		}
	})
	a.Count(usageOf(r.Member("tokens")))
	if input := agents.Count(r.Member("tokens").Member("input")); input > 0 {
		c.input = input
	}
	agents.EachPart(r.Member("toolCalls"), func(v rawjson.Value) {
		call := agents.Read(v)
		if !isWhole {
			a.Call(call.Member("id"), call.Member("name"), call.Member("args"))
		}
		c.result(call)
	})
	p.hash, c.last = hashOf("gemini", saidBy(r)), p
}

// thoughtOf returns the text of a thought.
func thoughtOf(t rawjson.Value) rawjson.Value {
	subject, _ := t.Member("subject").Text()
	text, _ := t.Member("description").Text()
	if subject != "" {
		text = strings.TrimSpace("**" + subject + "** " + text)
	}
	return rawjson.AppendQuoted(nil, text)
}

// result makes an entry of the result of a call, once it has one.
func (c *converter) result(call agents.Object) {
	id, ok := call.Member("id").Text()
	result, status := call.Member("result"), call.Member("status")
	failed := status.Is("error") || status.Is("cancelled")
	if !ok || result.Missing() && !failed && !status.Is("success") {
		return
	}
	c.done[id] = true
	shown := agents.Result{Call: call.Member("id"), Time: call.Member("timestamp"), IsError: failed}
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
	text := rawjson.AppendQuoted(nil, agents.TextIn(r.Member("content")))
	p, at := c.last, c.At()
	if a := c.Open(); p != nil && p.answer && !p.failed && a != nil && a.ID == p.id {
		a.Error(text)
		p.failed = true
		return
	}
	if p != nil {
		c.hang(p.end)
	}
	c.From(id, r.Member("timestamp"))
	c.Answer(id).Error(text)
	c.places[id] = &place{id: id, before: at, end: c.At()}
	if p != nil && p.end == at {
		p.end = c.At()
	} else if p != nil {
		c.hang(at)
	}
}

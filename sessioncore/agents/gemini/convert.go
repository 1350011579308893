package gemini

import (
	"hash/maphash"
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage/foreign"
)

var seed = maphash.MakeSeed()

// converter makes the entries of the records of one file, a log in which a message is replaced by a
// later one with its id (docs/format.md, Gemini CLI).
type converter struct {
	*foreign.Builder
	live   []*place          // the messages that the model is sent, in order
	places map[string]*place // all, by their ids
	last   *place            // the message made last that is no context, in the order of the file
	done   map[string]bool   // calls that have a result
	input  int64             // tokens of the last answer's input
}

// place is where a message is in the tree.
type place struct {
	id     string
	before string // the entry on which it hangs
	end    string // the entry on which the next message hangs
	first  string // the entry that it became first
	hash   uint64 // of its type and its text, 0 without a text
	answer bool
	failed bool // it ended with an error
}

func newConverter(b *foreign.Builder) func(rawjson.Value) {
	c := &converter{Builder: b, places: map[string]*place{}, done: map[string]bool{}}
	return c.record
}

// record makes what it is of a record.
func (c *converter) record(v rawjson.Value) {
	r := foreign.Read(v)
	set, id := foreign.Read(r.Member("$set")), r.Member("id")
	switch {
	case len(set) > 0:
		c.facts(set)
		if messages := set.Member("messages"); messages.IsArray() {
			c.replace(messages)
		}
	case r.Member("$rewindTo").IsString():
		to, _ := r.Member("$rewindTo").Text()
		c.rewind(to)
	case id.IsString():
		c.message(r)
	case r.Member("sessionId").IsString():
		c.Begin(foreign.Header{
			Time: r.Member("startTime"), Cwd: quoted(c.Moved), Subagent: sideKind(r.Member("kind")),
		})
		c.facts(r)
		r.Member("messages").EachElement(func(m rawjson.Value, _ int) bool {
			c.message(foreign.Read(m))
			return true
		})
	}
}

// quoted returns a text as JSON, nil for none.
func quoted(text string) rawjson.Value {
	if text == "" {
		return nil
	}
	return rawjson.AppendQuoted(nil, text)
}

// sideKind returns the kind of a session that is a subagent's, nil for another.
func sideKind(kind rawjson.Value) rawjson.Value {
	if kind.Is("subagent") {
		return kind
	}
	return nil
}

// facts notes facts about the session.
func (c *converter) facts(r foreign.Object) {
	title, _ := r.Member("summary").Text()
	c.Named(title)
}

// message makes the entries of a message, unless it stands before.
func (c *converter) message(r foreign.Object) {
	id, ok := r.Member("id").Text()
	known := c.places[id]
	typ := r.Member("type")
	switch {
	case !ok || known != nil && !(known.answer && typ.Is("gemini") && c.Replace(id)):
		return
	case typ.Is("error"):
		c.failed(r, id)
		return
	}
	p := known
	if p == nil {
		p = &place{id: id, before: c.At(), answer: typ.Is("gemini")}
		c.places[id] = p
		c.live = append(c.live, p)
	}
	c.From(id, r.Member("timestamp"))
	switch {
	case typ.Is("user"):
		c.user(r, p)
	case p.answer:
		c.answer(r, p)
	case typ.Is("info"):
		c.info(r)
	}
	if p.end = c.At(); p.answer {
		p.end = c.Open().End()
	}
}

// user makes the entries of a message in the person's name.
func (c *converter) user(r foreign.Object, p *place) {
	u := userOf(r)
	command, output, isCommand := u.command()
	c.Prompted(u.title())
	switch {
	case u.results:
		c.results(u.content)
		return
	case u.isContext():
		shown, _ := u.blocks()
		c.Custom("gemini/context", shown, false)
		return
	case isCommand:
		c.Bash(command, output, nil)
	default:
		shown, added := u.blocks()
		c.User(shown)
		if len(added) > 0 {
			c.Custom("gemini/content", added, false)
		}
	}
	p.first, p.hash, c.last = p.id, hashOfText("user", u.text), p
}

// results makes entries of the results in a message whose calls have none in their answers.
func (c *converter) results(content rawjson.Value) {
	eachPart(content, func(part rawjson.Value) {
		result := part.Member("functionResponse")
		id, ok := result.Member("id").Text()
		if !ok || c.done[id] {
			return
		}
		c.done[id] = true
		c.Tool(result.Member("id"), result.Member("name"))
		failed := !result.Member("response").Member("error").Missing()
		c.Result(foreign.Result{Call: result.Member("id"), Content: resultOf(part), IsError: failed})
	})
}

// answer makes the entries of an answer and of the results of its calls.
func (c *converter) answer(r foreign.Object, p *place) {
	content, calls := r.Member("content"), r.Member("toolCalls")
	c.Model(r.Member("model"))
	a := c.Answer(p.id)
	hasThoughts, hasCalls := false, false
	eachPart(content, func(part rawjson.Value) {
		hasThoughts = hasThoughts || isThought(part)
		hasCalls = hasCalls || part.Member("functionCall").IsObject()
	})
	isWhole := hasThoughts || hasCalls
	if !isWhole {
		r.Member("thoughts").EachElement(func(t rawjson.Value, _ int) bool {
			a.Thinking(thoughtOf(t), nil)
			return true
		})
	}
	eachPart(content, func(part rawjson.Value) {
		call := part.Member("functionCall")
		switch {
		case call.IsObject():
			a.Call(call.Member("id"), call.Member("name"), call.Member("args"))
		case isThought(part):
			a.Thinking(part.Member("text"), part.Member("thoughtSignature"))
		default:
			a.Text(part.Member("text"))
		}
	})
	if !isWhole {
		calls.EachElement(func(call rawjson.Value, _ int) bool {
			a.Call(call.Member("id"), call.Member("name"), call.Member("args"))
			return true
		})
	}
	a.Count(usageOf(r.Member("tokens")))
	if input := foreign.Count(r.Member("tokens").Member("input")); input > 0 {
		c.input = input
	}
	c.calls(calls)
	p.first, p.hash, c.last = p.id, hashOfText("gemini", textOf(content)), p
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

// calls makes entries of the results of calls.
func (c *converter) calls(calls rawjson.Value) {
	calls.EachElement(func(v rawjson.Value, _ int) bool {
		call := foreign.Read(v)
		id, ok := call.Member("id").Text()
		result, status := call.Member("result"), call.Member("status")
		failed := status.Is("error") || status.Is("cancelled")
		if !ok || result.Missing() && !failed && !status.Is("success") {
			return true
		}
		c.done[id] = true
		shown := foreign.Result{
			Call: call.Member("id"), Time: call.Member("timestamp"), Content: resultOf(result), IsError: failed,
		}
		if display := call.Member("resultDisplay"); !display.Missing() && !display.Is("") {
			shown.Details = display
		}
		if side, _ := call.Member("agentId").Text(); side != "" && !strings.Contains(side, "/") {
			shown.Session = subagentsDir + "/" + side + ending
		}
		c.Result(shown)
		return true
	})
}

// info makes an entry of data that a tool read, which the model is sent.
func (c *converter) info(r foreign.Object) {
	var blocks foreign.Blocks
	hasData := false
	eachPart(r.Member("content"), func(part rawjson.Value) {
		hasData = hasData || part.Member("inlineData").IsObject()
		addPart(&blocks, part)
	})
	if hasData {
		c.Custom("gemini/info", blocks, true)
	}
}

// failed makes an error the end of the answer before it, or an answer to the last message of the person.
// The client took that out of the conversation before.
func (c *converter) failed(r foreign.Object, id string) {
	text := r.Member("content")
	if !text.IsString() {
		text = rawjson.AppendQuoted(nil, textOf(text))
	}
	if p := c.last; p != nil && p.answer && !p.failed {
		if a := c.Open(); a != nil && a.ID == p.first {
			a.Error(text)
			p.failed = true
			return
		}
	}
	at, p := c.At(), c.last
	if p != nil {
		c.Hang(p.end)
	}
	c.From(id, r.Member("timestamp"))
	c.Answer(id).Error(text)
	c.places[id] = &place{id: id, before: at, end: id, failed: true}
	switch {
	case p == nil:
	case at != p.end:
		c.Hang(at)
	default:
		p.end = id
	}
}

func hashOfText(typ, text string) uint64 {
	if text == "" {
		return 0
	}
	return maphash.String(seed, typ+" "+text)
}

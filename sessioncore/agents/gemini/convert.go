package gemini

import (
	"bytes"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// converter makes the entries of the records of one file. In this log a later message replaces an earlier one
// with the same id (docs/format-gemini.md).
type converter struct {
	*agents.Builder
	root    *messagePlace            // before the first message
	live    *messagePlace            // the last message that the model is sent
	places  map[string]*messagePlace // all places, by the ids of messages and of their copies
	known   map[uint64]*messagePlace // places of messages with a text, by messagePlace.all
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
	end    string        // the parent of the next message's entry
	said   uint64        // saidBy
	all    uint64        // the hash of all texts up to it
	failed bool          // it ended with an error
}

// behind returns a place behind p. Two jumps of one length are followed by one as long as both and one more:
//
//	depth  1 2 3 4 5 6 7 8
//	jump   0 1 0 3 4 3 0 7
func (p *messagePlace) behind(id string) *messagePlace {
	next := &messagePlace{
		id:     id,
		before: p,
		jump:   p,
		depth:  p.depth + 1,
	}
	far := p.jump
	if far == nil || far.jump == nil {
		return next
	}
	firstLength := p.depth - far.depth
	secondLength := far.depth - far.jump.depth
	if firstLength == secondLength {
		next.jump = far.jump
	}
	return next
}

// above returns p or the place before it that has a depth, at most p's, in steps that grow with the logarithm of p's depth.
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

// newConverter returns the function that makes the entries of records.
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

// record makes the entries of a record: a message, a header, or a change to the messages before.
func (c *converter) record(record *agents.Record) {
	r := record.Object
	set := r.Member("$set")
	title, _ := r.Member("summary").Text()
	c.Named(title)
	title, _ = set.Member("summary").Text()
	c.Named(title)
	messages := set.Member("messages")
	rewind := r.Member("$rewindTo")
	switch {
	case messages.IsArray():
		c.replace(messages)
	case rewind.IsString():
		c.rewind(rewind)
	case r.Member("id").IsString():
		c.message(r)
	case r.Member("sessionId").IsString():
		c.begin(r)
	}
}

// begin makes the header, and the entries of the messages that stand in its record.
func (c *converter) begin(r agents.Object) {
	origin := r.Member("forkedFrom")
	c.fork(origin.Member("sessionId"))
	h := agents.Header{
		ID:   r.Member("sessionId"),
		Time: r.Member("startTime"),
		Cwd:  agents.Quoted(c.Moved),
	}
	kind := r.Member("kind")
	hasSession := c.Side || sessionOf(c.About.ID+ending) != "" // a subagent's session can be gone
	if kind.Is("subagent") && hasSession {
		h.Subagent = kind
	}
	c.Begin(h)
	agents.EachPart(r.Member("messages"), func(message rawjson.Value) {
		c.message(agents.Read(message))
	})
}

// fork sets the session that sessionfs forked to make this one.
func (c *converter) fork(session rawjson.Value) {
	id, _ := session.Text()
	if id != "" && c.About.Parent == "" && !c.IsHeaded() {
		c.About.Parent = id
	}
}

// message makes the entries of a message, unless an earlier record has it. It becomes the last message that the model is
// sent.
func (c *converter) message(r agents.Object) {
	id, hasID := r.Member("id").Text()
	typ, _ := r.Member("type").Text()
	if !r.Member("model").Missing() { // an answer of the model: the copies have ended
		c.copying = false
	}
	if !hasID {
		return
	}
	p := c.places[id]
	isRepeated := p != nil
	if isRepeated && !c.reopen(typ, id) {
		return
	}
	if typ == "error" { // the model is not sent it
		c.failed(r, id)
		return
	}
	said := saidBy(r)
	if !isRepeated {
		if c.isCopy(r, id, said) {
			return
		}
		p = c.live.behind(id)
		c.places[id] = p
		c.live = p
	}
	c.note(p, said)
	c.From(id, r.Member("timestamp"))
	if typ == "gemini" {
		c.answer(r, p)
		p.end = c.Open().End()
		return
	}
	hasImage := bytes.Contains(r.Member("content"), []byte(`"inlineData"`))
	switch {
	case typ == "user":
		c.user(r, p)
	case typ == "info" && hasImage: // the model is sent it
		shown, _ := userOf(r).blocks()
		c.Custom("gemini/info", shown, true)
	}
	p.end = c.At()
}

// reopen empties the open answer for a message that repeats it, to be made anew. It returns false for any other
// message with a known id, which makes nothing.
func (c *converter) reopen(typ, id string) bool {
	return typ == "gemini" && c.Replace(id)
}

// user makes the entries of a message in the person's name: late results, the prompt or command, and the texts that the
// program added. It may tell the working directory.
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
	c.Directory(agents.Quoted(u.cwd()))
	if len(shown) > 0 {
		kind = "gemini/content" // of files that the prompt names
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

// lateResult makes an entry of a result that does not stand in the answer with its call.
func (c *converter) lateResult(part rawjson.Value) {
	result := part.Member("functionResponse")
	call := result.Member("id")
	id, ok := call.Text()
	if !ok || c.done[id] {
		return
	}
	c.done[id] = true
	c.Tool(call, result.Member("name"))
	response := result.Member("response")
	shown := agents.ToolResult{
		Call:    call,
		IsError: !response.Member("error").Missing(),
	}
	shown.Content.Response(part)
	c.Result(shown)
}

// answer makes the entries of an answer and of the results of its calls. The record has thoughts and calls among its
// parts, or in lists of their own.
func (c *converter) answer(r agents.Object, p *messagePlace) {
	content := r.Member("content")
	hasThoughts, hasCalls := amongParts(content)
	c.Model(r.Member("model"))
	answer := c.Answer(p.id)
	if !hasThoughts {
		agents.EachPart(r.Member("thoughts"), func(thought rawjson.Value) {
			answer.Thinking(thoughtOf(thought), nil)
		})
	}
	agents.EachPart(content, func(part rawjson.Value) {
		call := part.Member("functionCall")
		switch {
		case call.IsObject():
			answer.Call(call.Member("id"), call.Member("name"), call.Member("args"))
		case agents.IsThought(part):
			answer.Thinking(part.Member("text"), part.Member("thoughtSignature"))
		default:
			answer.Part(part)
		}
	})
	tokens := r.Member("tokens")
	answer.Count(usageOf(tokens))
	input := agents.Count(tokens.Member("input"))
	if input != 0 { // a compression tells the last one known
		c.input = input
	}
	agents.EachPart(r.Member("toolCalls"), func(v rawjson.Value) {
		call := agents.Read(v)
		if !hasCalls {
			answer.Call(call.Member("id"), call.Member("name"), call.Member("args"))
		}
		c.result(call)
	})
	c.last = p
}

// amongParts reports whether thoughts and calls stand among the parts of an answer. Else its record has lists of
// them.
func amongParts(content rawjson.Value) (hasThoughts, hasCalls bool) {
	agents.EachPart(content, func(part rawjson.Value) {
		if agents.IsThought(part) {
			hasThoughts = true
		}
		if part.Member("functionCall").IsObject() {
			hasCalls = true
		}
	})
	return hasThoughts, hasCalls
}

// thoughtOf returns the text of a thought, with its subject in bold before it.
func thoughtOf(t rawjson.Value) rawjson.Value {
	text, _ := t.Member("description").Text()
	subject, _ := t.Member("subject").Text()
	if subject != "" {
		text = strings.TrimSpace("**" + subject + "** " + text)
	}
	return agents.Quoted(text)
}

// result makes an entry of the result of a call, if the record has it already.
func (c *converter) result(call agents.Object) {
	id, ok := call.Member("id").Text()
	result := call.Member("result")
	status := call.Member("status")
	hasFailed := status.Is("error") || status.Is("cancelled")
	isDone := hasFailed || status.Is("success") || !result.Missing()
	if !ok || !isDone {
		return
	}
	c.done[id] = true
	shown := agents.ToolResult{
		Call:    call.Member("id"),
		Time:    call.Member("timestamp"),
		IsError: hasFailed,
	}
	shown.Content.Response(result)
	display := call.Member("resultDisplay")
	if !display.Missing() && !display.Is("") {
		shown.Details = display
	}
	agent, _ := call.Member("agentId").Text()
	if agent != "" && !strings.Contains(agent, "/") {
		shown.Session = agents.Subagents + "/" + agent + ending
	}
	c.Result(shown)
}

// failed makes an error the end of the open answer, or an answer of its own to the last message, which the client may have
// taken out of the conversation. Then the next entry hangs where it would without the error, unless that is the last
// message.
func (c *converter) failed(r agents.Object, id string) {
	text := agents.Quoted(agents.TextIn(r.Member("content")))
	last := c.last
	open := c.Open()
	isOfLast := open != nil && open.ID == last.id
	if isOfLast && !last.failed {
		open.Error(text)
		last.failed = true
		return
	}
	before := c.At()
	c.Hang(last.end)
	c.From(id, r.Member("timestamp"))
	answer := c.Answer(id)
	answer.Error(text)
	place := c.live.behind("") // for records that name the error
	place.end = c.At()
	c.places[id] = place
	if last.end != before {
		c.Hang(before)
		return
	}
	last.end = c.At()
}

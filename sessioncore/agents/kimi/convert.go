package kimi

import (
	"cmp"
	"slices"
	"strconv"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// converter makes the entries of the log of an agent (docs/format-kimi.md).
type converter struct {
	*agents.Builder
	line    int64             // of the record
	step    string            // the call of the model under way, "" for none
	uncount agents.Usage      // tokens that were told before the first answer
	sides   map[string]string // the sessions of subagents, by the calls that started them
	undone  int64             // the line of an undo that was made before
	prompts []lineEnd         // those of this branch, each with the entry on which it hangs
	ends    []lineEnd         // the entries on which what follows lines hangs
}

// lineEnd is an entry, and the line to which it belongs.
type lineEnd struct {
	line  int64
	entry string
}

func newConverter(b *agents.Builder) func(*agents.Record) {
	b.InnerKey = "event"
	b.Named(b.About.Title)
	c := &converter{Builder: b, sides: map[string]string{}}
	return c.record
}

// record makes the entries of a record. Records of the kind event repeat others at the end of a turn.
func (c *converter) record(r *agents.Record) {
	if r.Member("kind").Is("event") {
		return
	}
	c.line = r.Line
	at := millis(r.Member("time"))
	if at == 0 {
		at = millis(r.Member("created_at"))
	}
	c.From("", agents.TimeText(at))
	typ, _ := r.Member("type").Text()
	switch typ {
	case "metadata":
		c.begin(at)
	case "llm.request":
		c.Model(r.Member("model"))
	case "context.append_message":
		c.message(agents.Read(r.Member("message")), at)
	case "context.append_loop_event":
		c.loop(r.Inner, at)
	case "usage.record":
		c.count(usageOf(r.Member("usage")), at)
	case "subagent.spawned":
		c.spawn(r)
	case "context.undo":
		c.undo(agents.Count(r.Member("count")))
	case "agent.switched":
		c.switchTo(agents.Count(r.Member("base").Member("line")))
		c.undone = agents.Count(r.Member("legacyUndoLine"))
	case "context.clear":
		c.Hang("")
		c.prompts = nil
	case "context.apply_compaction":
		c.Compaction(r.AnyOf("summary", "contextSummary"), "", agents.Count(r.Member("tokensBefore")))
	case "turn.step.interrupted":
		c.interrupt(r.Member("reason"))
	case "turn.ended":
		c.endTurn(r)
	}
	c.note()
}

// millis returns the milliseconds of a record, 0 for none.
func millis(v rawjson.Value) int64 {
	ms, _, ok := rawjson.ReadTimestamp(v)
	if !ok {
		return 0
	}
	return ms
}

// begin makes the header. The log has neither the session's id nor its directory.
func (c *converter) begin(at int64) {
	h := agents.Header{Time: agents.TimeText(at), Cwd: agents.Quoted(c.Moved)}
	if c.Side {
		h.Subagent = agents.Quoted("subagent")
	}
	c.Begin(h)
}

// note notes the entry on which the next one hangs behind the record's line.
func (c *converter) note() {
	n := len(c.ends)
	if n == 0 || c.ends[n-1].entry != c.At() {
		c.ends = append(c.ends, lineEnd{line: c.line, entry: c.At()})
	}
}

// message makes the entry of a message in the person's name, which the program may have made.
func (c *converter) message(m agents.Object, at int64) {
	id, _ := m.Member("id").Text()
	origin, _ := m.Member("origin").Member("kind").Text()
	isTask := c.Side && origin == "system_trigger" // the caller's words for a subagent
	isPrompt := m.Member("role").Is("user") && (origin == "" || origin == "user" || isTask)
	content, text := contentOf(m.Member("content"))
	c.From(id, agents.TimeText(at))
	if !isPrompt {
		kind := origin
		if kind == "" {
			kind = "message"
		}
		c.Custom("kimi/"+kind, content, origin != "injection")
		return
	}
	c.prompts = append(c.prompts, lineEnd{line: c.line, entry: c.At()})
	c.Prompted(text)
	c.User(content)
}

// contentOf returns the blocks of content, and its text. Content is a text, or parts.
func contentOf(content rawjson.Value) (blocks agents.Blocks, text string) {
	agents.EachPart(content, func(part rawjson.Value) {
		said, _ := part.Member("text").Text()
		if !blocks.ImageURL(imageOf(part)) && said != "" {
			text += said
			blocks.Text(part.Member("text"))
		}
	})
	return blocks, text
}

// imageOf returns the URL of the image in a part.
func imageOf(part rawjson.Value) rawjson.Value {
	image := part.Member("imageUrl")
	if image.Missing() {
		image = part.Member("image_url")
	}
	url := image.Member("url")
	if url.Missing() {
		return image
	}
	return url
}

// loop makes the entries of an event of a turn: parts of an answer, and the results of its calls.
func (c *converter) loop(event agents.Object, at int64) {
	kind, _ := event.Member("type").Text()
	step, _ := event.Member("stepUuid").Text()
	switch kind {
	case "step.begin":
		c.step, _ = event.Member("uuid").Text()
	case "content.part":
		part := event.Member("part")
		a := c.answer(step, at)
		if part.Member("type").Is("think") {
			a.Thinking(part.Member("think"), nil)
			return
		}
		a.ImageURL(imageOf(part))
		a.Text(part.Member("text"))
	case "tool.call":
		c.answer(step, at).Call(event.Member("toolCallId"), event.Member("name"), event.Member("args"))
	case "tool.result":
		c.result(event, at)
	}
}

// answer returns the answer of a call of the model.
func (c *converter) answer(step string, at int64) *agents.Answer {
	c.From(step, agents.TimeText(at))
	a := c.Answer(step)
	a.Count(c.uncount)
	c.uncount = agents.Usage{}
	return a
}

// count adds tokens to the answer under way. Those of a compaction go to the answer before it.
func (c *converter) count(u agents.Usage, at int64) {
	c.uncount = c.uncount.Plus(u)
	switch {
	case c.step != "":
		c.answer(c.step, at)
	case c.Open() != nil:
		c.Open().Count(c.uncount)
		c.uncount = agents.Usage{}
	}
}

// usageOf returns the tokens of a call of the model. Its input is without those of the cache.
func usageOf(tokens rawjson.Value) agents.Usage {
	count := func(key string) int64 {
		return agents.Count(tokens.Member(key))
	}
	u := agents.Usage{
		Input:      count("inputOther"),
		Output:     count("output"),
		CacheRead:  count("inputCacheRead"),
		CacheWrite: count("inputCacheCreation"),
	}
	u.Total = u.Input + u.Output + u.CacheRead + u.CacheWrite
	return u
}

// result makes the entry of the result of a call.
func (c *converter) result(event agents.Object, at int64) {
	id, _ := event.Member("parentUuid").Text()
	call, _ := event.Member("toolCallId").Text()
	result := event.Member("result")
	c.From(id, agents.TimeText(at))
	shown := agents.ToolResult{
		Call:    event.Member("toolCallId"),
		IsError: result.Member("isError").Truthy(),
		Session: c.sides[call],
	}
	shown.Content, _ = contentOf(result.Member("output"))
	note := result.Member("note")
	if note.IsString() {
		shown.Details = slices.Concat(rawjson.Value(`{"note":`), note, rawjson.Value("}"))
	}
	c.Result(shown)
}

// spawn notes the session of a subagent, for the result of its call.
func (c *converter) spawn(r *agents.Record) {
	call, _ := r.Member("parentToolCallId").Text()
	agent, _ := r.Member("subagentId").Text()
	if call != "" && agents.IsSubagent(agent) {
		c.sides[call] = agents.Subagents + "/" + agent + ending
	}
}

// undo makes the next entry hang on the one before the last prompts. They stay as a branch.
func (c *converter) undo(count int64) {
	if count <= 0 || len(c.prompts) == 0 || c.line == c.undone {
		return
	}
	first := max(0, len(c.prompts)-int(min(count, int64(len(c.prompts)))))
	c.Hang(c.prompts[first].entry)
	c.prompts = c.prompts[:first]
}

// switchTo makes the next entry hang on the one at the end of a line.
func (c *converter) switchTo(line int64) {
	behind := firstBehind(c.ends, line)
	if line > 0 && behind > 0 {
		c.Hang(c.ends[behind-1].entry)
		c.prompts = c.prompts[:firstBehind(c.prompts, line)]
	}
}

// firstBehind returns the index of the first element behind a line. They are in the order of lines.
func firstBehind(list []lineEnd, line int64) int {
	at, _ := slices.BinarySearchFunc(list, line+1, func(e lineEnd, line int64) int {
		return cmp.Compare(e.line, line)
	})
	return at
}

// interrupt ends the answer of the step under way as broken off, unless an error did it.
func (c *converter) interrupt(reason rawjson.Value) {
	a := c.Open()
	if a != nil && a.ID == c.step && !reason.Is("error") {
		a.Abort()
	}
}

// endTurn ends a turn. The last call of the model in a turn that failed has an answer, which tells the error.
func (c *converter) endTurn(r *agents.Record) {
	if r.Member("reason").Is("failed") {
		id := c.step
		if id == "" {
			id = "l" + strconv.FormatInt(c.line, 10)
		}
		c.answer(id, millis(r.Member("time"))).Error(r.Member("error").Member("message"))
	}
	c.step = ""
}

package kimi

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// converter makes the entries of the log of an agent (docs/format-kimi.md).
type converter struct {
	*agents.Builder
	line    int64             // the number of the record's line
	step    string            // the call of the model under way, "" for none
	uncount agents.Usage      // tokens counted before the first answer
	sides   map[string]string // the sessions of subagents, by the calls that started them
	undone  int64             // the line of an undo that a switch of agents has made already
	prompts []lineEnd         // the prompts of this branch, each with its parent
	ends    []lineEnd         // the parents of the entries after lines, where they change
}

// lineEnd is an entry, and the line that it belongs to.
type lineEnd struct {
	line  int64
	entry string
}

// newConverter returns the function that makes the entries of records.
func newConverter(b *agents.Builder) func(*agents.Record) {
	b.InnerKey = "event"
	b.Named(b.About.Title)
	c := &converter{Builder: b, sides: map[string]string{}}
	return c.record
}

// record makes the entries of a record, and notes where the next one hangs. Records of the kind event repeat others at the
// end of a turn, and make none.
func (c *converter) record(r *agents.Record) {
	if r.Member("kind").Is("event") {
		return
	}
	c.line = r.Line
	at := timeOf(r)
	c.From("", agents.TimeText(at))
	typ, _ := r.Member("type").Text()
	switch typ {
	case "metadata":
		c.begin(at)
	case "llm.request":
		c.Model(r.Member("model"))
	case "context.append_message":
		message := agents.Read(r.Member("message"))
		c.message(message, at)
	case "context.append_loop_event":
		c.loop(r.Inner, at)
	case "usage.record":
		usage := usageOf(r.Member("usage"))
		c.count(usage, at)
	case "subagent.spawned":
		c.spawn(r)
	case "context.undo":
		prompts := agents.Count(r.Member("count"))
		c.undo(prompts)
	case "agent.switched":
		base := r.Member("base")
		line := agents.Count(base.Member("line"))
		c.switchTo(line)
		c.undone = agents.Count(r.Member("legacyUndoLine"))
	case "context.clear":
		c.Hang("")
		c.prompts = nil
	case "context.apply_compaction":
		summary := r.AnyOf("summary", "contextSummary")
		tokensBefore := agents.Count(r.Member("tokensBefore"))
		c.Compaction(summary, "", tokensBefore)
	case "turn.step.interrupted":
		c.interrupt(r.Member("reason"))
	case "turn.ended":
		c.endTurn(r)
	}
	c.note()
}

// timeOf returns the time of a record in milliseconds, 0 for none. The first record names it differently.
func timeOf(r *agents.Record) int64 {
	at := millis(r.Member("time"))
	if at == 0 {
		at = millis(r.Member("created_at"))
	}
	return at
}

// millis returns the milliseconds of a timestamp since the epoch, 0 for none.
func millis(v rawjson.Value) int64 {
	ms, _, isTime := rawjson.ReadTimestamp(v)
	if !isTime {
		return 0
	}
	return ms
}

// begin makes the header. The log has neither the session's id nor its directory. at is in ms since the epoch, 0 for an
// unknown time, as in the functions below.
func (c *converter) begin(at int64) {
	h := agents.Header{
		Time: agents.TimeText(at),
		Cwd:  agents.Quoted(c.Moved),
	}
	if c.Side {
		h.Subagent = agents.Quoted("subagent")
	}
	c.Begin(h)
}

// note notes the parent of the next entry after the record's line, where it changed.
func (c *converter) note() {
	entry := c.At()
	last := len(c.ends) - 1
	if last >= 0 && c.ends[last].entry == entry {
		return
	}
	c.ends = append(c.ends, lineEnd{line: c.line, entry: entry})
}

// message makes the entry of a message in the person's name, which the program may have made.
func (c *converter) message(m agents.Object, at int64) {
	id, _ := m.Member("id").Text()
	origin, _ := m.Member("origin").Member("kind").Text()
	content, text := contentOf(m.Member("content"))
	c.From(id, agents.TimeText(at))
	isPrompt := m.Member("role").Is("user") && c.isPromptOrigin(origin)
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

// isPromptOrigin reports whether a message of an origin is a prompt. A subagent's prompt is its caller's task.
func (c *converter) isPromptOrigin(origin string) bool {
	switch origin {
	case "", "user":
		return true
	case "system_trigger":
		return c.Side
	}
	return false
}

// contentOf returns the blocks of content, its texts and images, and the texts joined. Content is a text, or parts.
func contentOf(content rawjson.Value) (blocks agents.Blocks, text string) {
	var all strings.Builder
	agents.EachPart(content, func(part rawjson.Value) {
		isImage := blocks.ImageURL(imageOf(part))
		if isImage {
			return
		}
		words, _ := part.Member("text").Text()
		if words != "" {
			all.WriteString(words)
			blocks.Text(part.Member("text"))
		}
	})
	return blocks, all.String()
}

// imageOf returns the URL of the image in a part, or a missing value. The member is the URL, or an object with it.
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
		answer := c.answer(step, at)
		addPart(answer, event.Member("part"))
	case "tool.call":
		answer := c.answer(step, at)
		answer.Call(event.Member("toolCallId"), event.Member("name"), event.Member("args"))
	case "tool.result":
		c.result(event, at)
	}
}

// addPart adds a part of the model's answer: thinking, an image or a text.
func addPart(answer *agents.Answer, part rawjson.Value) {
	if part.Member("type").Is("think") {
		answer.Thinking(part.Member("think"), nil)
		return
	}
	answer.ImageURL(imageOf(part))
	answer.Text(part.Member("text"))
}

// answer returns the answer of a call of the model, a step, with the tokens counted before it. It makes the step's record
// the current one.
func (c *converter) answer(step string, at int64) *agents.Answer {
	c.From(step, agents.TimeText(at))
	a := c.Answer(step)
	a.Count(c.uncount)
	c.uncount = agents.Usage{}
	return a
}

// count adds tokens to the answer under way. The tokens of a compaction go to the answer before it.
func (c *converter) count(u agents.Usage, at int64) {
	c.uncount = c.uncount.Plus(u)
	if c.step != "" {
		c.answer(c.step, at)
		return
	}
	before := c.Open()
	if before != nil {
		before.Count(c.uncount)
		c.uncount = agents.Usage{}
	}
}

// usageOf returns the tokens of a call of the model. Its input is without the tokens of the cache.
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
	c.From(id, agents.TimeText(at))
	call := event.Member("toolCallId")
	callID, _ := call.Text()
	result := event.Member("result")
	content, _ := contentOf(result.Member("output"))
	shown := agents.ToolResult{
		Call:    call,
		Content: content,
		IsError: result.Member("isError").Truthy(),
		Session: c.sides[callID],
	}
	note := result.Member("note")
	if note.IsString() {
		shown.Details = slices.Concat(rawjson.Value(`{"note":`), note, rawjson.Value("}"))
	}
	c.Result(shown)
}

// spawn notes the session of a subagent, for the result of the call that started it.
func (c *converter) spawn(r *agents.Record) {
	call, _ := r.Member("parentToolCallId").Text()
	agent, _ := r.Member("subagentId").Text()
	if call != "" && agents.IsSubagent(agent) {
		c.sides[call] = agents.Subagents + "/" + agent + ending
	}
}

// undo takes back the last prompts: the next entry hangs where the first of them does. They stay as a branch.
// Of the prompts a, b, c, undo(2) keeps a, and the next entry hangs on the entry before b.
func (c *converter) undo(count int64) {
	isMade := c.line == c.undone // by the switch of agents before it
	if isMade || count <= 0 || len(c.prompts) == 0 {
		return
	}
	undone := int(min(count, int64(len(c.prompts))))
	kept := len(c.prompts) - undone
	c.Hang(c.prompts[kept].entry)
	c.prompts = c.prompts[:kept]
}

// switchTo makes the next entry hang on the one at the end of a line, and forgets the prompts behind that. A line before the
// first entry changes nothing.
func (c *converter) switchTo(line int64) {
	behind := firstBehind(c.ends, line)
	if line <= 0 || behind == 0 {
		return
	}
	c.Hang(c.ends[behind-1].entry)
	kept := firstBehind(c.prompts, line)
	c.prompts = c.prompts[:kept]
}

// firstBehind returns the index of the first element behind a line. They are in the order of lines.
func firstBehind(list []lineEnd, line int64) int {
	next := line + 1
	index, _ := slices.BinarySearchFunc(list, next, func(end lineEnd, line int64) int {
		return cmp.Compare(end.line, line)
	})
	return index
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
		c.fail(r)
	}
	c.step = ""
}

// fail adds the error of a turn to the answer under way, or to one with the number of the line as its id.
func (c *converter) fail(r *agents.Record) {
	id := c.step
	if id == "" { // no step is under way
		id = "l" + strconv.FormatInt(c.line, 10)
	}
	at := millis(r.Member("time"))
	reason := r.Member("error")
	answer := c.answer(id, at)
	answer.Error(reason.Member("message"))
}

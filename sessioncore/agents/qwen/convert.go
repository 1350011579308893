package qwen

import (
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// agentPrefix begins the names of subagents' files.
const agentPrefix = "agent-"

// converter makes the entries of the records of one file, a log of records in a tree (docs/format-qwen.md).
type converter struct {
	*agents.Builder
	ends  map[string]string // by records: the entry on which those behind them hang
	typed map[string]string // by records: the words of a prompt as they were typed
}

func newConverter(b *agents.Builder) func(*agents.Record) {
	b.InnerKey = "message"
	c := &converter{
		Builder: b,
		ends:    map[string]string{},
		typed:   map[string]string{},
	}
	return c.record
}

// record makes the entries of a record. A record whose id stands before is a copy of that one.
func (c *converter) record(r *agents.Record) {
	id, ok := r.Member("uuid").Text()
	_, isKnown := c.ends[id]
	if !ok || isKnown {
		return
	}
	before, _ := r.Member("parentUuid").Text()
	end, hasParent := c.ends[before]
	if before != "" && !hasParent {
		end = c.At() // the file lacks its parent
	}
	c.begin(r)
	c.From(id, r.Member("timestamp"))
	if r.Member("type").Is("system") {
		end = c.system(r, id, end)
	} else {
		c.hang(end)
		c.conversation(r, id, before)
		end = c.At()
	}
	c.ends[id] = end
}

// hang makes the next entry hang on another one, unless it does.
func (c *converter) hang(end string) {
	if end != c.At() {
		c.Hang(end)
	}
}

// begin makes the header, of the first record. The id of a subagent is in the name of its file alone.
func (c *converter) begin(r *agents.Record) {
	h := agents.Header{
		Time:    r.Member("timestamp"),
		Cwd:     r.Member("cwd"),
		Version: r.Member("version"),
		Branch:  r.Member("gitBranch"),
	}
	switch {
	case c.Side:
		h.Subagent = r.Member("agentName")
	case !r.Member("isSidechain").Truthy():
		h.ID = r.Member("sessionId")
	}
	c.fork(r.Member("forkedFrom").Member("sessionId"))
	c.Begin(h)
}

// fork sets the session of which this one is a fork. A header before has to be written anew.
func (c *converter) fork(session rawjson.Value) {
	id, _ := session.Text()
	if id != "" && c.About.Parent == "" && id != c.About.ID {
		c.About.Parent = id
		if c.IsHeaded() {
			c.Reread()
		}
	}
}

// system makes the entries of a record of the program, and returns the entry on which the records
// behind it hang.
func (c *converter) system(r *agents.Record, id, end string) string {
	payload := agents.Read(r.Member("systemPayload"))
	kind, _ := r.Member("subtype").Text()
	switch kind {
	case "custom_title":
		title, _ := payload.Member("customTitle").Text()
		c.Named(agents.FirstLine(title))
	case "at_command":
		c.typed[id], _ = payload.Member("userText").Text()
	case "parent_session":
		c.fork(payload.Member("parentSessionId"))
	case "rewind": // the prompts behind its parent stay as a branch
		c.hang(end)
	case "chat_compression":
		return c.compression(payload, end)
	case "ui_telemetry":
		event := agents.Read(payload.Member("uiEvent"))
		if event.Member("event.name").Is("qwen-code.api_error") {
			c.hang(end)
			c.Answer(id).Error(event.Member("error_message"))
			c.Close()
			return c.At()
		}
	}
	return end
}

// compression makes the entry of a compression, whose summary begins the new history.
func (c *converter) compression(payload agents.Object, end string) string {
	summary := ""
	for message := range payload.Member("compressedHistory").EachElement {
		summary = agents.TextIn(message.Member("parts"))
		break
	}
	if summary == "" {
		return end
	}
	c.hang(end)
	c.Compaction(agents.Quoted(summary), "", agents.Count(payload.Member("info").Member("originalTokenCount")))
	return c.At()
}

// conversation makes the entries of a message or of the result of a tool.
func (c *converter) conversation(r *agents.Record, id, before string) {
	parts := r.Inner.Member("parts")
	switch {
	case r.Member("type").Is("assistant"):
		c.answer(r, id, parts)
	case r.Member("type").Is("tool_result"):
		c.results(r, parts)
	case r.Member("type").Is("user") && isTyped(r):
		c.user(parts, c.typed[before])
	case r.Member("type").Is("user"):
		subtype, _ := r.Member("subtype").Text()
		var content agents.Blocks
		agents.EachPart(parts, content.Part)
		c.Custom(strings.TrimSuffix("qwen/"+subtype, "/"), content, true)
	}
}

// isTyped reports whether a message in the person's name was typed, not made by the program.
func isTyped(r *agents.Record) bool {
	subtype := r.Member("subtype")
	return !r.Member("provenance").Is("system") && (subtype.Missing() || subtype.Is("mid_turn_user_message"))
}

// filesBegin and filesEnd stand around the contents of files that a prompt names.
const (
	filesBegin = "--- Content from referenced files ---"
	filesEnd   = "--- End of content ---"
)

// user makes the entries of a prompt: one as it was typed, and one of the files that the program added.
// typed may be "", and then all before the files was typed.
func (c *converter) user(parts rawjson.Value, typed string) {
	var shown, added agents.Blocks
	isFile := false
	prompt := typed
	shown.Text(agents.Quoted(typed))
	agents.EachPart(parts, func(part rawjson.Value) {
		text, isText := part.Member("text").Text()
		marker := strings.TrimSpace(text)
		isFile = isFile || marker == filesBegin
		switch {
		case marker == filesBegin || marker == filesEnd || isText && text == typed:
		case isFile || isText && typed != "":
			added.Part(part)
		default:
			prompt += text
			shown.Part(part)
		}
	})
	c.Prompted(prompt)
	if len(shown) > 0 {
		c.User(shown)
	}
	if len(added) > 0 {
		c.Custom("qwen/content", added, false)
	}
}

// answer makes the entry of an answer. The tokens of a fork's copies count in their own session.
func (c *converter) answer(r *agents.Record, id string, parts rawjson.Value) {
	c.Model(r.Member("model"))
	a := c.Answer(id)
	agents.EachPart(parts, func(part rawjson.Value) {
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
	if r.Member("forkedFrom").Missing() {
		a.Count(usageOf(r.Member("usageMetadata")))
	}
	c.Close()
}

// usageOf returns the tokens of an answer. Its prompt has those in it that were read from the cache,
// and its answer the thoughts unless the total tells otherwise.
func usageOf(tokens rawjson.Value) agents.Usage {
	count := func(key string) int64 {
		return agents.Count(tokens.Member(key))
	}
	prompt := count("promptTokenCount")
	u := agents.Usage{
		CacheRead: count("cachedContentTokenCount"),
		Output:    max(count("candidatesTokenCount"), count("totalTokenCount")-prompt),
	}
	u.Input = max(0, prompt-u.CacheRead)
	u.Total = u.Input + u.CacheRead + u.Output
	return u
}

// results makes an entry of the result of each call in a record, mostly one, which has all of its parts.
func (c *converter) results(r *agents.Record, parts rawjson.Value) {
	outcome := agents.Read(r.Member("toolCallResult"))
	var calls []rawjson.Value
	agents.EachPart(parts, func(part rawjson.Value) {
		if part.Member("functionResponse").IsObject() {
			calls = append(calls, part)
		}
	})
	if len(calls) == 1 {
		c.result(outcome, agents.Read(calls[0].Member("functionResponse")), parts)
		return
	}
	for _, part := range calls {
		c.result(outcome, agents.Read(part.Member("functionResponse")), part)
	}
}

// result makes the entry of the result of a call. content is in Google's form.
func (c *converter) result(outcome, response agents.Object, content rawjson.Value) {
	status := outcome.Member("status")
	display := outcome.Member("resultDisplay")
	c.Tool(response.Member("id"), response.Member("name"))
	hasError := !response.Member("response").Member("error").Missing()
	shown := agents.ToolResult{
		Call:    response.Member("id"),
		IsError: status.Is("error") || status.Is("cancelled") || status.Missing() && hasError,
	}
	shown.Content.Response(content)
	if !display.Is("") {
		shown.Details = display
	}
	shown.Session = sideOf(display, response.Member("id"))
	c.Result(shown)
}

// sideOf returns the path of the session of the subagent that a call started, "" for none. The client
// names a subagent by its kind and the call.
func sideOf(display, call rawjson.Value) string {
	kind, _ := display.Member("subagentName").Text()
	id, _ := call.Text()
	name := agentPrefix + kind + "-" + id
	if kind == "" || id == "" || !agents.IsSubagent(name) {
		return ""
	}
	return agents.Subagents + "/" + name + ending
}

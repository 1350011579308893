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
	ends  map[string]string // the parent of the entries of a record's children, by the record's id
	typed map[string]string // the words of a prompt as they were typed, by the record's id
}

// newConverter returns the function that makes the entries of records.
func newConverter(b *agents.Builder) func(*agents.Record) {
	b.InnerKey = "message"
	c := &converter{
		Builder: b,
		ends:    map[string]string{},
		typed:   map[string]string{},
	}
	return c.record
}

// record makes the entries of a record, behind those of its parent. A later record with the same id is a copy, and makes
// none.
func (c *converter) record(r *agents.Record) {
	id, hasID := r.Member("uuid").Text()
	_, isKnown := c.ends[id]
	if !hasID || isKnown {
		return
	}
	parent, _ := r.Member("parentUuid").Text()
	end, hasParent := c.ends[parent]
	if parent != "" && !hasParent {
		end = c.At() // the file lacks its parent
	}
	c.begin(r)
	c.From(id, r.Member("timestamp"))
	if r.Member("type").Is("system") { // most make no entry, and must not move the leaf
		c.ends[id] = c.system(r, id, end)
		return
	}
	c.hang(end)
	c.conversation(r, id, parent)
	c.ends[id] = c.At()
}

// hang makes the next entry hang on another one, "" for none, unless it does.
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
	origin := r.Member("forkedFrom")
	c.fork(origin.Member("sessionId"))
	c.Begin(h)
}

// fork sets the session that this one is forked from. A header that is already written has to be written anew.
func (c *converter) fork(session rawjson.Value) {
	id, _ := session.Text()
	isKnown := c.About.Parent != ""
	if id == "" || isKnown || id == c.About.ID {
		return
	}
	c.About.Parent = id
	if c.IsHeaded() {
		c.Reread()
	}
}

// system makes the entries of a record of the program, by its subtype, and returns the parent of its children's entries:
// end, which is that of its own entries, if it makes none.
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
			return c.failure(id, event, end)
		}
	}
	return end
}

// failure makes the entry of an answer that failed behind the entry end, and returns its id.
func (c *converter) failure(id string, event agents.Object, end string) string {
	c.hang(end)
	answer := c.Answer(id)
	answer.Error(event.Member("error_message"))
	c.Close()
	return c.At()
}

// compression makes the entry of a compression behind the entry end, and returns its id, or end for one without a summary.
func (c *converter) compression(payload agents.Object, end string) string {
	summary := ""
	for message := range payload.Member("compressedHistory").EachElement {
		summary = agents.TextIn(message.Member("parts"))
		break // the new history begins with the summary
	}
	if summary == "" {
		return end
	}
	c.hang(end)
	info := payload.Member("info")
	tokensBefore := agents.Count(info.Member("originalTokenCount"))
	c.Compaction(agents.Quoted(summary), "", tokensBefore)
	return c.At()
}

// conversation makes the entries of a message or of the result of a tool, by the ids of its record and the parent of that.
func (c *converter) conversation(r *agents.Record, id, parent string) {
	parts := r.Inner.Member("parts")
	kind, _ := r.Member("type").Text()
	switch kind {
	case "assistant":
		c.answer(r, id, parts)
	case "tool_result":
		c.results(r, parts)
	case "user":
		if isTyped(r) {
			c.user(parts, c.typed[parent])
			return
		}
		c.note(r, parts)
	}
}

// isTyped reports whether a message in the person's name was typed, not made by the program.
func isTyped(r *agents.Record) bool {
	if r.Member("provenance").Is("system") {
		return false
	}
	subtype := r.Member("subtype")
	return subtype.Missing() || subtype.Is("mid_turn_user_message")
}

// note makes the entry of a message that the program made in the person's name.
func (c *converter) note(r *agents.Record, parts rawjson.Value) {
	kind := "qwen"
	subtype, _ := r.Member("subtype").Text()
	if subtype != "" {
		kind = "qwen/" + subtype
	}
	var content agents.Blocks
	agents.EachPart(parts, content.Part)
	c.Custom(kind, content, true)
}

// filesBegin and filesEnd stand around the contents of files that a prompt names.
const (
	filesBegin = "--- Content from referenced files ---"
	filesEnd   = "--- End of content ---"
)

// user makes the entries of a prompt: one as it was typed, and one of the files that the program added.
// typed may be "": then everything before the files was typed.
func (c *converter) user(parts rawjson.Value, typed string) {
	var shown, added agents.Blocks
	isAmongFiles := false
	var prompt strings.Builder
	prompt.WriteString(typed)
	shown.Text(agents.Quoted(typed))
	agents.EachPart(parts, func(part rawjson.Value) {
		text, isText := part.Member("text").Text()
		isTypedText := isText && text == typed
		isAddedText := isText && typed != "" && !isTypedText
		switch strings.TrimSpace(text) {
		case filesBegin:
			isAmongFiles = true
			return
		case filesEnd:
			return
		}
		switch {
		case isTypedText:
		case isAmongFiles || isAddedText:
			added.Part(part)
		default:
			prompt.WriteString(text)
			shown.Part(part)
		}
	})
	c.Prompted(prompt.String())
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
	answer := c.Answer(id)
	agents.EachPart(parts, func(part rawjson.Value) {
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
	if r.Member("forkedFrom").Missing() {
		usage := usageOf(r.Member("usageMetadata"))
		answer.Count(usage)
	}
	c.Close() // each record is an answer
}

// usageOf returns the tokens of an answer. The client counts tokens read from the cache as part of the prompt,
// and thoughts as part of the answer, unless the total is larger than prompt and answer.
func usageOf(tokens rawjson.Value) agents.Usage {
	count := func(key string) int64 {
		return agents.Count(tokens.Member(key))
	}
	prompt := count("promptTokenCount")
	afterPrompt := count("totalTokenCount") - prompt
	u := agents.Usage{
		CacheRead: count("cachedContentTokenCount"),
		Output:    max(count("candidatesTokenCount"), afterPrompt),
	}
	u.Input = max(0, prompt-u.CacheRead)
	u.Total = u.Input + u.CacheRead + u.Output
	return u
}

// results makes an entry of the result of each call in a record. Mostly that is one call, and all parts are its
// result.
func (c *converter) results(r *agents.Record, parts rawjson.Value) {
	outcome := agents.Read(r.Member("toolCallResult"))
	var calls []rawjson.Value
	agents.EachPart(parts, func(part rawjson.Value) {
		if part.Member("functionResponse").IsObject() {
			calls = append(calls, part)
		}
	})
	for _, part := range calls {
		response := agents.Read(part.Member("functionResponse"))
		content := part
		if len(calls) == 1 {
			content = parts
		}
		c.result(outcome, response, content)
	}
}

// result makes the entry of the result of a call. outcome is the record's, which may be nil, response the part's, and content
// is in Google's form.
func (c *converter) result(outcome, response agents.Object, content rawjson.Value) {
	call := response.Member("id")
	display := outcome.Member("resultDisplay")
	c.Tool(call, response.Member("name"))
	shown := agents.ToolResult{
		Call:    call,
		IsError: hasFailed(outcome, response),
		Session: sideOf(display, call),
	}
	shown.Content.Response(content)
	if !display.Is("") {
		shown.Details = display
	}
	c.Result(shown)
}

// hasFailed reports whether a call failed, by its status, and without one by its response.
func hasFailed(outcome, response agents.Object) bool {
	status := outcome.Member("status")
	if status.Missing() {
		content := response.Member("response")
		return !content.Member("error").Missing()
	}
	return status.Is("error") || status.Is("cancelled")
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

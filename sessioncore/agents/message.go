package agents

import (
	"bytes"
	"slices"
	"strconv"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
)

// Blocks is the content of a message: JSON objects with commas between them, or one JSON text.
type Blocks []byte

// Text adds a text. It ignores other values than texts.
func (l *Blocks) Text(text rawjson.Value) {
	if text.IsString() {
		l.begin(`{"type":"text"`)
		*l = AppendMember(*l, "text", text)
		l.end()
	}
}

// Image adds an image of base64 data. It ignores one without a type or data.
func (l *Blocks) Image(mimeType, data rawjson.Value) {
	if mimeType.IsString() && data.IsString() {
		l.begin(`{"type":"image"`)
		*l = AppendMember(*l, "data", data)
		*l = AppendMember(*l, "mimeType", mimeType)
		l.end()
	}
}

// ImageURL adds the image in a data URL, and reports whether there is one.
func (l *Blocks) ImageURL(url rawjson.Value) bool {
	body, isDataURL := bytes.CutPrefix(url, []byte(`"data:`))
	mimeType, data, isBase64 := bytes.Cut(body, []byte(";base64,"))
	if !isDataURL || !isBase64 {
		return false
	}
	isQuotable := !bytes.ContainsAny(mimeType, `"\;,`)
	if !isQuotable {
		return false
	}
	quotedType := append([]byte{'"'}, mimeType...)
	quotedType = append(quotedType, '"')
	quotedData := append([]byte{'"'}, data...) // the end of the URL is the quote behind it
	l.Image(quotedType, quotedData)
	return true
}

// Other adds a block of the agent's. It ignores other values than objects.
func (l *Blocks) Other(block rawjson.Value) {
	if block.IsObject() {
		l.begin("")
		*l = append(*l, block...)
	}
}

// begin begins a block with a text, which may be "": its brace and first members.
func (l *Blocks) begin(text string) {
	if len(*l) > 0 {
		*l = append(*l, ',')
	}
	*l = append(*l, text...)
}

func (l *Blocks) end() { *l = append(*l, '}') }

// appendContent appends the content of a message: a text, or else a list of blocks, which is empty for facts.
func (b *Builder) appendContent(dst []byte, content Blocks) []byte {
	switch {
	case b.Facts:
		return append(dst, "[]"...)
	case rawjson.Value(content).IsString():
		return append(dst, content...)
	}
	dst = append(dst, '[')
	dst = append(dst, content...)
	return append(dst, ']')
}

// User adds a message of a person.
func (b *Builder) User(content Blocks) {
	body := append(b.start(), `"message":{"role":"user","content":`...)
	body = b.appendContent(body, content)
	body = appendMillis(body, b.from.time)
	body = append(body, '}')
	b.addOfRecord("message", body)
}

// maxEarly bounds the entries that wait for the header, in bytes.
const maxEarly = 256 << 10

// Context adds a message of the program in the person's name. Before the header it waits for that: the agent may find
// the header's directory in it. At most maxEarly bytes wait; then the header is written.
func (b *Builder) Context(content Blocks) {
	body := append(b.start(), `"message":{"role":"user","content":`...)
	body = b.appendContent(body, content)
	body = append(body, `,"synthetic":true`...)
	body = appendMillis(body, b.from.time)
	body = append(body, '}')
	if b.headed || len(b.early) > maxEarly {
		b.addOfRecord("message", body)
		return
	}
	e := Entry{
		Type:   "message",
		ID:     b.nextID(),
		Parent: b.at,
		Time:   b.from.time,
		Body:   body,
		Path:   b.Path,
		Lines:  b.from.lines(),
	}
	b.at = e.ID
	b.last = e.ID
	b.early = e.AppendTo(b.early)
	b.body = reuse(body)
}

// Custom adds a message of the program, with more members of the entry. kind is its customType, such as gemini/info.
// Readers show it if display is true.
func (b *Builder) Custom(kind string, content Blocks, display bool, more ...rawjson.Member) {
	body := b.appendCustom(b.start(), kind, content, display, more...)
	b.addOfRecord("custom_message", body)
}

// appendCustom appends the members of a custom entry: more of them, unless they are missing, stand before its content.
func (b *Builder) appendCustom(dst []byte, kind string, content Blocks, display bool, more ...rawjson.Member) []byte {
	dst = append(dst, `"customType":`...)
	dst = rawjson.AppendQuoted(dst, kind)
	for _, m := range more {
		if len(m.Value) > 0 {
			dst = append(dst, ',')
			dst = append(dst, m.Key...)
			dst = append(dst, ':')
			dst = append(dst, m.Value...)
		}
	}
	dst = append(dst, `,"content":`...)
	dst = b.appendContent(dst, content)
	dst = append(dst, `,"display":`...)
	return strconv.AppendBool(dst, display)
}

// notSent is the member of an entry that no model is sent.
const notSent = `,"excludeFromContext":true`

// NotSent adds a message of the program that is shown, and not sent to the model.
func (b *Builder) NotSent(kind string, content Blocks) {
	body := b.appendCustom(b.start(), kind, content, true)
	b.addOfRecord("custom_message", append(body, notSent...))
}

// Asked adds words of a person outside the conversation, such as a question to the program, which are not sent to the
// model. agent is the agent's name.
func (b *Builder) Asked(agent string, content Blocks) {
	attribution := rawjson.Member{Key: rawjson.Value(`"attribution"`), Value: rawjson.Value(`"user"`)}
	body := b.appendCustom(b.start(), agent+message.PromptEnding, content, true, attribution)
	b.addOfRecord("custom_message", append(body, notSent...))
}

// Full adds the content of the entry made last as it was before the client shortened it. It is not sent to the model. Its
// id is that entry's with .full, and kind is its customType.
func (b *Builder) Full(kind string, content Blocks) {
	e := Entry{
		Type:  "custom_message",
		ID:    b.last + ".full",
		Time:  b.from.time,
		Lines: b.from.lines(),
	}
	b.claim(e.ID)
	e.Body = b.appendCustom(b.start(), kind, content, true)
	e.Body = append(e.Body, notSent...)
	b.add(&e)
}

// Mention adds a file that the person named in a prompt, with its content or an image. path is a JSON text.
func (b *Builder) Mention(path, content rawjson.Value, image Blocks) {
	body := append(b.start(), `"message":{"role":"fileMention","files":[{"path":`...)
	body = append(body, path...)
	if !b.Facts {
		body = AppendMember(body, "content", content)
		body = AppendMember(body, "image", rawjson.Value(image))
	}
	body = append(body, "}]"...)
	body = appendMillis(body, b.from.time)
	body = append(body, '}')
	b.addOfRecord("message", body)
}

// Bash adds a command that the person ran. The exit status is a number, or missing.
func (b *Builder) Bash(command, output string, exit rawjson.Value) {
	if b.Facts {
		command = ""
		output = ""
	}
	body := append(b.start(), `"message":{"role":"bashExecution","command":`...)
	body = rawjson.AppendQuoted(body, command)
	body = append(body, `,"output":`...)
	body = rawjson.AppendQuoted(body, output)
	if exit.IsNumber() {
		body = AppendMember(body, "exitCode", exit)
	}
	body = appendMillis(body, b.from.time)
	body = append(body, '}')
	b.addOfRecord("message", body)
}

// Compaction adds a compaction. firstKept is the first entry with a message that is kept, or ""; tokens
// are the tokens before the compaction, or 0.
func (b *Builder) Compaction(summary rawjson.Value, firstKept string, tokens int64) {
	if !summary.IsString() || b.Facts {
		summary = rawjson.Value(`""`)
	}
	body := append(b.start(), `"summary":`...)
	body = append(body, summary...)
	if firstKept != "" {
		body = append(body, `,"firstKeptEntryId":`...)
		body = rawjson.AppendQuoted(body, firstKept)
	}
	if tokens > 0 {
		body = append(body, `,"tokensBefore":`...)
		body = strconv.AppendInt(body, tokens, 10)
	}
	b.addOfRecord("compaction", body)
}

// BilledTool is the tool with results that may have a usage in their details.
const BilledTool = "task"

// ToolResult is the result of a tool's call.
type ToolResult struct {
	Call    rawjson.Value
	Time    rawjson.Value // if it is not the record's
	Content Blocks
	Details rawjson.Value // may be missing
	IsError bool
	Session string // path of the subagent's session, from the session's directory
}

// Tool sets the tool of a call, for its results. It ignores a call without an id or a name.
func (b *Builder) Tool(call, name rawjson.Value) {
	id, ok := call.Text()
	if ok && name.IsString() {
		name = slices.Clone(nameOf(name))
		b.tools[id] = name
		b.named += int64(len(id) + len(name))
	}
}

// Result adds the result of a call. A result from the record of the open answer belongs to that
// answer, and precedes other entries behind it.
func (b *Builder) Result(r ToolResult) {
	id, _ := r.Call.Text()
	from := b.origin()
	e := Entry{
		Type:    "message",
		Time:    r.Time,
		Lines:   from.lines(),
		Session: r.Session,
	}
	if e.Time.Missing() {
		e.Time = from.time
	}
	a := b.open
	isOwn := a != nil && a.isOf(from)
	body := b.body[:0]
	if !isOwn { // else the settings wait: the result belongs before them
		body = b.start()
	}
	tool, isKnown := b.tools[id]
	b.reduce(&r, tool)
	if !isKnown {
		tool = rawjson.Value(`"unknown"`)
	}
	body = append(body, `"message":{"role":"toolResult"`...)
	body = AppendMember(body, "toolCallId", r.Call)
	body = AppendMember(body, "toolName", tool)
	body = append(body, `,"content":[`...)
	body = append(body, r.Content...)
	body = append(body, ']')
	body = AppendMember(body, "details", r.Details)
	body = append(body, `,"isError":`...)
	body = strconv.AppendBool(body, r.IsError)
	e.Body = appendMillis(body, e.Time)
	e.Body = append(e.Body, '}')
	e.ID = b.nextID()
	if isOwn {
		a.addResult(&e)
	} else {
		b.add(&e)
	}
}

// isOf reports whether a record is the last one of the answer.
func (a *Answer) isOf(record *Origin) bool {
	return a.from.id == record.id && a.from.line == record.line
}

// reduce removes the parts of a result that the reader of the session does not want. A bill of a result with a usage
// needs the text.
func (b *Builder) reduce(r *ToolResult, tool rawjson.Value) {
	if b.Facts {
		r.Content = nil
		if !tool.Is(BilledTool) {
			r.Details = nil
		}
	}
	if b.Bills() && r.Details.Member("usage").IsObject() {
		b.billing.isPartial = true
	}
	if b.Words && !message.MayNest(r.Details) {
		r.Details = nil
	}
}

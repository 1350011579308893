package gemini

import (
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage/foreign"
)

// members has the members of a message.
type members interface {
	Member(key string) rawjson.Value
}

// message is the content of a message of the person or of the program in the person's name.
type message struct {
	content, display rawjson.Value
	text             string // all texts
	results          bool   // it has results of tools, which its answer has too
}

// userOf reads a message.
func userOf(m members) (u message) {
	u.content, u.display = m.Member("content"), m.Member("displayContent")
	u.text = textOf(u.content)
	eachPart(u.content, func(part rawjson.Value) { u.results = u.results || part.Member("functionResponse").IsObject() })
	return u
}

// eachPart calls f for the parts of content: a text, an object, or a list of both.
func eachPart(content rawjson.Value, f func(rawjson.Value)) {
	switch {
	case content.IsArray():
		content.EachElement(func(part rawjson.Value, _ int) bool {
			eachPart(part, f)
			return true
		})
	case content.IsString():
		f(append(append(rawjson.Value(`{"text":`), content...), '}'))
	case content.IsObject():
		f(content)
	}
}

// textOf returns the texts in content, without thoughts.
func textOf(content rawjson.Value) string {
	var all strings.Builder
	eachPart(content, func(part rawjson.Value) {
		if text, ok := part.Member("text").Text(); ok && !isThought(part) {
			all.WriteString(text)
		}
	})
	return all.String()
}

func isThought(part rawjson.Value) bool { return part.Member("thought").Truthy() }

// isContext reports whether the program put the text in.
func (u message) isContext() bool {
	text := strings.TrimSpace(u.text)
	return strings.HasPrefix(text, "<session_context>") || strings.HasPrefix(text, "<hook_context>") ||
		strings.HasPrefix(text, "This is the Gemini CLI. We are setting up the context for our chat.") // older
}

// isSnapshot reports whether a text is the summary of a compression.
func isSnapshot(text string) bool {
	return strings.HasPrefix(strings.TrimSpace(text), "<state_snapshot>")
}

// title returns a text that may be the session's title, "" for one that is no prompt.
func (u message) title() string {
	text := strings.TrimSpace(textOf(u.display))
	if text == "" {
		text = strings.TrimSpace(u.text)
	}
	if command, _, ok := u.command(); ok {
		text = "! " + command
	}
	if u.results || u.isContext() || isSnapshot(u.text) || strings.HasPrefix(text, "/") || strings.HasPrefix(text, "?") {
		return ""
	}
	return foreign.FirstLine(text)
}

// directory returns the working directory that the program names in the session's context, "" for none.
func (u message) directory() string {
	for _, before := range [...]string{"I'm currently working in the directory: ", "- **Workspace Directories:**\n  - "} {
		if _, after, ok := strings.Cut(u.text, before); ok {
			dir, _, _ := strings.Cut(after, "\n")
			return strings.TrimSpace(dir)
		}
	}
	return ""
}

// command returns the command that a person ran, and its output, which the program tells the model.
func (u message) command() (command, output string, ok bool) {
	rest, ok := strings.CutPrefix(u.text, "I ran the following shell command:\n```sh\n")
	command, rest, found := strings.Cut(rest, "\n```\n\nThis produced the following result:\n```\n")
	return command, strings.TrimSuffix(rest, "\n```"), ok && found
}

// blocks returns the content that is shown, and the texts that the program added to what was typed.
func (u message) blocks() (shown, added foreign.Blocks) {
	typed := textOf(u.display)
	if typed != "" {
		shown.Text(rawjson.AppendQuoted(nil, typed))
	}
	eachPart(u.content, func(part rawjson.Value) {
		text := part.Member("text")
		said, _ := text.Text()
		switch {
		case typed == "" || !text.IsString():
			addPart(&shown, part)
		case said != typed && !isMarker(said):
			added.Text(text)
		}
	})
	return shown, added
}

// isMarker reports whether a text only stands between the contents of files.
func isMarker(text string) bool {
	text = strings.TrimSpace(text)
	return text == "" || strings.HasPrefix(text, "--- ") && strings.HasSuffix(text, " ---")
}

// addPart adds a part that is no call: a text, an image, or the name of other data.
func addPart(blocks *foreign.Blocks, part rawjson.Value) {
	data, file := part.Member("inlineData"), part.Member("fileData")
	kind, _ := data.Member("mimeType").Text()
	switch {
	case strings.HasPrefix(kind, "image/"):
		blocks.Image(data.Member("mimeType"), data.Member("data"))
	case data.IsObject():
		blocks.Text(rawjson.AppendQuoted(nil, "["+kind+"]"))
	case file.IsObject():
		blocks.Text(file.Member("fileUri"))
	case !part.Member("text").Is(""):
		blocks.Text(part.Member("text"))
	}
}

// resultOf returns the content of a tool's result: a text, or parts, of which the first has the answer of
// the tool.
func resultOf(result rawjson.Value) (blocks foreign.Blocks) {
	eachPart(result, func(part rawjson.Value) {
		answer := part.Member("functionResponse")
		if !answer.IsObject() {
			addPart(&blocks, part)
			return
		}
		said := answer.Member("response")
		text := said.AnyOf("output", "error")
		if len(text) == 0 && said.IsObject() && string(said) != "{}" {
			text = said
		}
		if len(text) > 0 && !text.IsString() {
			text = rawjson.AppendQuoted(nil, string(text))
		}
		blocks.Text(text)
		eachPart(answer.Member("parts"), func(part rawjson.Value) { addPart(&blocks, part) })
	})
	return blocks
}

// saidBy returns the text of a message with the ids of its calls, by which a copy of it is known.
func saidBy(m members) string {
	said := textOf(m.Member("content"))
	note := func(call rawjson.Value) {
		id, _ := call.Member("id").Text()
		said += id
	}
	eachPart(m.Member("toolCalls"), note)
	if !m.Member("toolCalls").IsArray() {
		eachPart(m.Member("content"), func(part rawjson.Value) { note(part.Member("functionCall")) })
	}
	return said
}

// usageOf returns the tokens of an answer. Its input has those in it that were read from the cache.
func usageOf(tokens rawjson.Value) foreign.Usage {
	n := func(key string) int64 { return foreign.Count(tokens.Member(key)) }
	u := foreign.Usage{CacheRead: n("cached"), Output: n("output") + n("thoughts")}
	u.Input = max(0, n("input")-u.CacheRead) + n("tool")
	u.Total = u.Input + u.CacheRead + u.Output
	return u
}

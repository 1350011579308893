package gemini

import (
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
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
	u.text = agents.TextIn(u.content)
	agents.EachPart(u.content, func(part rawjson.Value) {
		u.results = u.results || part.Member("functionResponse").IsObject()
	})
	return u
}

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
	text := strings.TrimSpace(agents.TextIn(u.display))
	if text == "" {
		text = strings.TrimSpace(u.text)
	}
	if command, _, ok := u.command(); ok {
		text = "! " + command
	}
	if u.results || u.isContext() || isSnapshot(u.text) || strings.HasPrefix(text, "/") || strings.HasPrefix(text, "?") {
		return ""
	}
	return agents.FirstLine(text)
}

// directory returns the working directory that the program names in the session's context, "" for
// none.
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
func (u message) blocks() (shown, added agents.Blocks) {
	typed := agents.TextIn(u.display)
	if typed != "" {
		shown.Text(agents.Quoted(typed))
	}
	agents.EachPart(u.content, func(part rawjson.Value) {
		text := part.Member("text")
		said, _ := text.Text()
		switch {
		case typed == "" || !text.IsString():
			shown.Part(part)
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

// saidBy returns the text of a message with the ids of its calls, by which a copy of it is known.
func saidBy(m members) string {
	said := agents.TextIn(m.Member("content"))
	note := func(call rawjson.Value) {
		id, _ := call.Member("id").Text()
		said += id
	}
	agents.EachPart(m.Member("toolCalls"), note)
	if !m.Member("toolCalls").IsArray() {
		agents.EachPart(m.Member("content"), func(part rawjson.Value) { note(part.Member("functionCall")) })
	}
	return said
}

// usageOf returns the tokens of an answer. Its input has those in it that were read from the cache.
func usageOf(tokens rawjson.Value) agents.Usage {
	n := func(key string) int64 { return agents.Count(tokens.Member(key)) }
	u := agents.Usage{CacheRead: n("cached"), Output: n("output") + n("thoughts")}
	u.Input = max(0, n("input")-u.CacheRead) + n("tool")
	u.Total = u.Input + u.CacheRead + u.Output
	return u
}

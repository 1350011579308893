package gemini

import (
	"hash/maphash"
	"slices"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

var seed = maphash.MakeSeed()

// message is a message in the person's name.
type message struct {
	content, display rawjson.Value
	text             string // all texts but the context
	context          string // the texts that the program put in
	results          bool   // it has results of tools, which its answer has too
}

// userOf reads a message in the person's name.
func userOf(m agents.Object) (u message) {
	u.content = m.Member("content")
	u.display = m.Member("displayContent")
	var typed, context strings.Builder
	agents.EachPart(u.content, func(part rawjson.Value) {
		if part.Member("functionResponse").IsObject() {
			u.results = true
		}
		text := agents.TextIn(part)
		if startsWith(text, contexts...) {
			context.WriteString(text)
		} else {
			typed.WriteString(text)
		}
	})
	u.text = typed.String()
	u.context = context.String()
	return u
}

// contexts begin texts that the program puts in, the first two of them all that the model is sent.
// snapshot begins the summary of a compression, and markers stand between the contents of files.
var (
	contexts = []string{"<session_context>", "This is the Gemini CLI. We are setting up the context", "<hook_context>"}
	snapshot = "<state_snapshot>"
	markers  = []string{"", "--- Content from referenced files ---", "--- End of content ---"}
)

// startsWith reports whether a text starts with one of several, behind white space.
func startsWith(text string, starts ...string) bool {
	text = strings.TrimSpace(text)
	return slices.ContainsFunc(starts, func(start string) bool { return strings.HasPrefix(text, start) })
}

// title returns a text that may be the session's title, "" for one that is no prompt.
func (u message) title() string {
	text := strings.TrimSpace(agents.TextIn(u.display))
	if text == "" {
		text = strings.TrimSpace(u.text)
	}
	command, _, isCommand := u.command()
	if isCommand {
		text = "! " + command // as it is typed
	}
	if u.results || startsWith(text, "/", "?", snapshot) {
		return ""
	}
	return agents.FirstLine(text)
}

// command returns the command that a person ran, and its output, which the program tells the model.
func (u message) command() (command, output string, ok bool) {
	const (
		begin  = "I ran the following shell command:\n```sh\n"
		middle = "\n```\n\nThis produced the following result:\n```\n"
		end    = "\n```"
	)
	rest, hasBegin := strings.CutPrefix(u.text, begin)
	command, output, hasMiddle := strings.Cut(rest, middle)
	return command, strings.TrimSuffix(output, end), hasBegin && hasMiddle
}

// cwd returns the working directory in the program's texts, "" if they have none.
func (u message) cwd() string {
	cwd := agents.Between(u.context, "I'm currently working in the directory: ", "\n")
	if cwd != "" {
		return cwd
	}
	return agents.Between(u.context, "- **Workspace Directories:**\n  - ", "\n")
}

// blocks returns the content that is shown, and the texts that the program added.
func (u message) blocks() (shown, added agents.Blocks) {
	typed := agents.TextIn(u.display) // without the contents of files that the content has
	shown.Text(agents.Quoted(typed))
	agents.EachPart(u.content, func(part rawjson.Value) {
		text := part.Member("text")
		words, isText := text.Text()
		isMarker := slices.Contains(markers, strings.TrimSpace(words))
		switch {
		case startsWith(words, contexts...):
			added.Text(text)
		case typed == "" || !isText:
			shown.Part(part)
		case words != typed && !isMarker:
			added.Text(text)
		}
	})
	return shown, added
}

// saidBy returns a hash of a message's type, its text and the ids of its calls. A copy of the message has the
// same. It is 0 for a message without text and calls, and for one of the program.
func saidBy(m agents.Object) uint64 {
	typ, _ := m.Member("type").Text()
	isSpoken := typ == "user" || typ == "gemini"
	if !isSpoken {
		return 0
	}
	said := []byte(strings.TrimSpace(userOf(m).text))
	addID := func(call rawjson.Value) {
		id, _ := call.Member("id").Bytes()
		said = append(said, id...)
	}
	calls := m.Member("toolCalls")
	agents.EachPart(calls, addID)
	if !calls.IsArray() { // then the calls are among the parts
		agents.EachPart(m.Member("content"), func(part rawjson.Value) {
			addID(part.Member("functionCall"))
		})
	}
	if len(said) == 0 {
		return 0
	}
	return maphash.String(seed, typ+" "+string(said))
}

// usageOf returns the tokens of an answer. Its input has those in it that were read from the cache.
func usageOf(tokens rawjson.Value) agents.Usage {
	count := func(key string) int64 {
		return agents.Count(tokens.Member(key))
	}
	u := agents.Usage{
		CacheRead: count("cached"),
		Output:    count("output") + count("thoughts"),
	}
	uncached := count("input") - u.CacheRead
	u.Input = max(0, uncached) + count("tool")
	u.Total = u.Input + u.CacheRead + u.Output
	return u
}

package claude

import (
	"cmp"
	"slices"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// titles finds the title of a session in its records: a person's, else the client's, else a
// summary. For a session that does not begin with a prompt it is the prompt that the client shows;
// else none, as a list finds the first message.
type titles struct {
	custom, generated, summary string
	prompt                     string
	waiting                    string // a command; the next record decides whether it is a prompt
	local                      string // the first local command, for a session with nothing else
	read, before               int    // bytes of records; of messages not by the person
	// isAnswering says that the next message may be the client\'s answer to a slash command.
	isAnswering bool
	pastList    bool // a list does not find messages from here on
	done        bool // the first prompt was found
}

// maxBefore bounds the bytes before the first message for a list to find it in its 4 KiB.
const maxBefore = 2 << 10

// given returns the title that a record gives, or "".
func (t *titles) given() string { return cmp.Or(t.custom, t.generated, t.summary) }

// title returns the title, or "".
func (t *titles) title() string { return cmp.Or(t.given(), t.prompt, t.waiting, t.local) }

// add adds a record. Callers add its size to t.read.
func (t *titles) add(r agents.Object) {
	t.named(r)
	t.pastList = t.pastList || t.read > agents.HeadSize
	typ := r.Member("type")
	said, isVoice := voiceTalk(r)
	args := unknownArgs(r)
	switch {
	case t.done || r.Member("isSidechain").IsTrue():
	case typ.Is("assistant") && !r.Member("message").Member("model").Is("<synthetic>"):
		t.goOn(r)
	case typ.Is("user") && (r.Member("isMeta").IsTrue() || r.Member("isCompactSummary").IsTrue()):
		t.isAnswering = isCaveat(r.Member("message").Member("content"))
		t.goOn(r) // the expansion of a command that is a prompt
	case isVoice && !said.isMeta:
		t.say(said.content)
	case args != nil:
		t.settle(agents.ChatText(rawjson.Value(args)))
	case typ.Is("user"):
		t.say(r.Member("message").Member("content"))
		t.isAnswering = false
	}
}

// named sets a title.
func (t *titles) named(r agents.Object) {
	typ := r.Member("type")
	switch {
	case typ.Is("custom-title"):
		title, _ := r.Member("customTitle").Text()
		t.custom = agents.Name(title)
	case typ.Is("ai-title"):
		title, _ := r.Member("aiTitle").Text()
		t.generated = agents.Name(title)
	case typ.Is("summary"):
		title, _ := r.Member("summary").Text()
		t.summary = agents.Name(title)
	}
}

// goOn handles an answer to the typed text. A list still finds a first message behind a short one.
func (t *titles) goOn(r agents.Object) {
	t.before += len(r.Member("message"))
	t.pastList = t.pastList || t.before > maxBefore
	if t.waiting != "" {
		t.settle(t.waiting)
	}
}

// settle sets the first prompt.
func (t *titles) settle(prompt string) {
	t.prompt = agents.FirstLine(prompt)
	t.waiting = ""
	t.done = true
}

// say adds the texts of a person's record.
func (t *titles) say(content rawjson.Value) {
	text, _ := content.Text()
	t.text(text)
	for block := range content.EachElement {
		if block.Member("type").Is("text") {
			text, _ := block.Member("text").Text()
			t.text(text)
		}
	}
	t.pastList = true
}

// text adds a text, by the client's rules for the first prompt.
func (t *titles) text(text string) {
	text = rawjson.TrimSpace(text)
	name, isCommand := tagged(text, "command-name")
	typed, isShell := tagged(text, "bash-input")
	switch {
	case t.done || text == "":
	case sayerOf(agents.Quoted(text), false) == output:
		if t.local == "" {
			t.local = t.waiting
		}
		t.waiting = ""
		t.pastList = true
	case t.waiting != "":
		t.settle(t.waiting)
	case isCommand:
		name = "/" + strings.TrimPrefix(name, "/")
		args, _ := tagged(text, "command-args")
		t.pastList = true
		switch {
		case !slices.Contains(localCommands, name):
			t.waiting = agents.FirstLine(name + " " + args)
		case t.local == "":
			t.local = agents.Name(name)
		}
	case isShell:
		t.settle("! " + typed)
	case isPutIn(text), t.isAnswering && isUnknownCommand(text):
		t.pastList = true
	case t.pastList:
		t.settle(text)
	default:
		t.done = true
	}
}

// tagged returns the text between the first tags of a name.
func tagged(text, name string) (inside string, ok bool) {
	_, text, ok = strings.Cut(text, "<"+name+">")
	inside, _, closed := strings.Cut(text, "</"+name+">")
	return rawjson.TrimSpace(inside), ok && closed
}

// isPutIn reports whether a text in the person's name is the client's.
func isPutIn(text string) bool {
	if strings.HasPrefix(text, interrupted) {
		return true
	}
	isEnd := func(c rune) bool { return c == '>' || c == ' ' || c == '\n' || c == '\t' || c == '\r' }
	end := strings.IndexFunc(text, isEnd)
	return end > 1 && text[0] == '<' && text[1] >= 'a' && text[1] <= 'z' &&
		strings.Trim(text[1:end], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
}

// localCommands are the commands that the client runs itself.
var localCommands = []string{
	"/add-dir", "/agents", "/allowed-tools", "/app", "/bashes", "/branch", "/btw", "/bug", "/checkpoint",
	"/chrome", "/clear", "/color", "/compact", "/config", "/context", "/continue", "/copy", "/cost", "/desktop",
	"/diff", "/doctor", "/effort", "/exit", "/export", "/extra-usage", "/fast", "/feedback", "/files", "/fork",
	"/help", "/hooks", "/ide", "/install-github-app", "/install-slack-app", "/keybindings", "/login", "/logout",
	"/mcp", "/memory", "/mobile", "/model", "/new", "/output-style", "/passes", "/permissions", "/plan",
	"/plugin", "/plugins", "/privacy-settings", "/quit", "/rate-limit-options", "/rc", "/release-notes",
	"/reload-plugins", "/remote-control", "/remote-env", "/rename", "/reset", "/resume", "/rewind", "/sandbox",
	"/session", "/settings", "/skills", "/stats", "/status", "/stickers", "/tag", "/tasks", "/terminal-setup",
	"/theme", "/todos", "/upgrade", "/usage", "/vim", "/voice",
}

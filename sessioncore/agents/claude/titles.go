package claude

import (
	"slices"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// titles finds the title of a session in its records: a person's, else the client's, else a
// summary. For a session that does not begin with a prompt it is the prompt that the client shows;
// else none, as a list finds the first message.
type titles struct {
	custom    string // a title that a person gave
	generated string // one that the client made
	summary   string
	prompt    string
	waiting   string // a command; the next record decides whether it is a prompt
	local     string // the first local command, for a session with nothing else
	read      int    // bytes of records
	before    int    // bytes of the messages that are not the person's
	// isAnswering says that the next message may be the client's answer to a slash command.
	isAnswering bool
	pastList    bool // a list does not find messages from here on
	done        bool // the first prompt was found
}

// maxBefore bounds the bytes before the first message for a list to find it in its 4 KiB.
const maxBefore = 2 << 10

// given returns the title that a record gives, or "".
func (t *titles) given() string {
	switch {
	case t.custom != "":
		return t.custom
	case t.generated != "":
		return t.generated
	}
	return t.summary
}

// title returns the title as far as records were added, or "".
func (t *titles) title() string {
	given := t.given()
	switch {
	case given != "":
		return given
	case t.prompt != "":
		return t.prompt
	case t.waiting != "":
		return t.waiting
	}
	return t.local
}

// add adds a record. Callers add its size to t.read before.
func (t *titles) add(r agents.Object) {
	t.addGiven(r)
	if t.read > agents.HeadSize {
		t.pastList = true
	}
	if t.done || r.Member("isSidechain").IsTrue() {
		return
	}
	typ := r.Member("type")
	message := r.Member("message")
	spoken, isVoice := voiceTalk(r)
	args := unknownArgs(r)
	switch {
	case typ.Is("assistant") && !message.Member("model").Is("<synthetic>"): // those are the client's notes
		t.addAnswer(message)
	case typ.Is("user") && isClientsTalk(r):
		t.isAnswering = isCaveat(message.Member("content"))
		t.addAnswer(message) // the expansion of a command that is a prompt
	case isVoice && !spoken.isMeta:
		t.addTalk(spoken.content)
	case args != nil:
		text := agents.ChatText(rawjson.Value(args))
		t.settle(text)
	case typ.Is("user"):
		t.addTalk(message.Member("content"))
		t.isAnswering = false
	}
}

// isClientsTalk reports whether a record in the person's name is the client's text for the model.
func isClientsTalk(r agents.Object) bool {
	return r.Member("isMeta").IsTrue() || r.Member("isCompactSummary").IsTrue()
}

// addGiven adds a record that may give a title. The last one of its type counts.
func (t *titles) addGiven(r agents.Object) {
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

// addAnswer adds a message that is not the person's: a command before it was a prompt. A list still finds a first
// message of the person behind short ones.
func (t *titles) addAnswer(message rawjson.Value) {
	t.before += len(message)
	if t.before > maxBefore {
		t.pastList = true
	}
	if t.waiting != "" {
		t.settle(t.waiting)
	}
}

// settle sets the first prompt. Later records change no title but a given one.
func (t *titles) settle(prompt string) {
	t.prompt = agents.FirstLine(prompt)
	t.waiting = ""
	t.done = true
}

// addTalk adds the texts of a person's record. A list finds only the first such record.
func (t *titles) addTalk(content rawjson.Value) {
	text, _ := content.Text()
	t.addText(text)
	for block := range content.EachElement {
		if block.Member("type").Is("text") {
			text, _ := block.Member("text").Text()
			t.addText(text)
		}
	}
	t.pastList = true
}

// addText adds a text of a person's record, by the client's rules for the first prompt. For a plain one that a list
// finds itself, no title is set.
func (t *titles) addText(text string) {
	text = rawjson.TrimSpace(text)
	if t.done || text == "" {
		return
	}
	name, isCommand := tagged(text, "command-name")
	shellCommand, isShell := tagged(text, "bash-input")
	isOutput := sayerOf(agents.Quoted(text), false) == output
	switch {
	case isOutput: // so a command before it is a local one
		if t.local == "" {
			t.local = t.waiting
		}
		t.waiting = ""
		t.pastList = true
	case t.waiting != "":
		t.settle(t.waiting)
	case isCommand:
		args, _ := tagged(text, "command-args")
		t.addCommand("/"+strings.TrimPrefix(name, "/"), args)
	case isShell:
		t.settle("! " + shellCommand)
	case isPutIn(text), t.isAnswering && isUnknownCommand(text):
		t.pastList = true
	case t.pastList:
		t.settle(text)
	default:
		t.done = true
	}
}

// addCommand adds a slash command with its arguments. One that is not known to be local waits for the next record.
func (t *titles) addCommand(name, args string) {
	t.pastList = true
	isLocal := slices.Contains(localCommands, name)
	switch {
	case !isLocal:
		t.waiting = agents.FirstLine(name + " " + args)
	case t.local == "":
		t.local = agents.Name(name)
	}
}

// tagged returns the trimmed text between the first tags of a name. ok is false without both tags.
func tagged(text, name string) (inside string, ok bool) {
	_, rest, isOpened := strings.Cut(text, "<"+name+">")
	inside, _, isClosed := strings.Cut(rest, "</"+name+">")
	return rawjson.TrimSpace(inside), isOpened && isClosed
}

const (
	lowerCase = "abcdefghijklmnopqrstuvwxyz"
	// tagRunes are the characters of a tag's name.
	tagRunes = lowerCase + "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
)

// isPutIn reports whether a trimmed text in the person's name is the client's, as its first prompt never is: a note
// of an interruption, or a text that begins with any tag.
func isPutIn(text string) bool {
	if strings.HasPrefix(text, interrupted) {
		return true
	}
	tag, isTag := strings.CutPrefix(text, "<")
	end := strings.IndexAny(tag, "> \n\t\r")
	if !isTag || end < 1 {
		return false
	}
	name := tag[:end]
	begin := strings.IndexByte(lowerCase, name[0])
	return begin >= 0 && strings.Trim(name, tagRunes) == ""
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

package claude

import (
	"bytes"
	"slices"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// This file finds the words of a person in records that are no plain messages, and the client's words
// in plain messages (docs/format-claude.md).

// unknownCommands begin the client's answer to a slash command that it does not know, and argsBegin
// the record with the arguments.
var unknownCommands = []string{"Unknown skill: ", "Unknown command: "}

const argsBegin = "Args from unknown skill: "

// unknownArgs returns a person's words behind an unknown slash command, as a JSON text, or nil for
// another record.
func unknownArgs(r agents.Object) agents.Blocks {
	if !r.Member("type").Is("system") || !r.Member("subtype").Is("informational") {
		return nil
	}
	text, _ := r.Member("content").Text()
	args, found := strings.CutPrefix(text, argsBegin)
	if !found || rawjson.TrimSpace(args) == "" {
		return nil
	}
	return agents.Blocks(agents.Quoted(args))
}

// isUnknownCommand reports whether a text is the client's answer to an unknown slash command, if the
// client said before that no person wrote it.
func isUnknownCommand(text string) bool {
	isOf := func(begin string) bool { return strings.HasPrefix(text, begin) }
	return slices.ContainsFunc(unknownCommands, isOf) && !strings.Contains(text, "\n")
}

// isCaveat reports whether a record's content says that local commands follow.
func isCaveat(content rawjson.Value) bool {
	return bytes.Contains(content, []byte(`"<local-command-caveat>`))
}

// talk is a person's speech in a voice call.
type talk struct {
	content  rawjson.Value
	isMeta   bool
	isQueued bool // while the client worked
}

// voiceTalk returns the words of a record of a voice call. ok is false for other records.
func voiceTalk(r agents.Object) (said talk, ok bool) {
	isTalk := r.Member("type").Is("system") && r.Member("subtype").Is("voice_call_talk")
	if !isTalk || !r.Member("origin").Member("kind").Is("voice-call") {
		return talk{}, false
	}
	said.content = r.Member("blocks")
	if !said.content.IsArray() {
		said.content = r.Member("content")
	}
	if command := r.Member("fold").Member("command"); command.IsObject() {
		said.isQueued = true
		said.isMeta = isClientsCommand(agents.Read(command))
	}
	return said, true
}

// interrupted begins the client's note that a person interrupted it.
const interrupted = "[Request interrupted by user"

// putIn are the tags of texts that the client adds to a person's message.
var putIn = []string{
	"ide_opened_file", "ide_selection", "ide_diagnostics", "system-reminder", "user-prompt-submit-hook",
	"session-start-hook", "new-diagnostics",
}

// isPutInWhole reports whether all texts of a person's record are the client's, and nothing but
// results of tools stands beside them.
func isPutInWhole(content rawjson.Value) bool {
	if !bytes.Contains(content, []byte(`"<`)) && !bytes.Contains(content, []byte(interrupted)) {
		return false
	}
	if content.IsString() {
		return isPutInText(content)
	}
	texts := 0
	for block := range content.EachElement {
		switch {
		case block.Member("type").Is("tool_result"):
		case block.Member("type").Is("text") && isPutInText(block.Member("text")):
			texts++
		default:
			return false
		}
	}
	return texts > 0
}

// isPutInText reports whether a text is the client's as a whole.
func isPutInText(v rawjson.Value) bool {
	text, _ := v.Text()
	words, isWrapped := withoutPutIn(rawjson.TrimSpace(text))
	return isWrapped && words == ""
}

// withoutPutIn cuts the client's texts off the beginning of a text without white space around it.
func withoutPutIn(text string) (words string, isWrapped bool) {
	if strings.HasPrefix(text, interrupted) && strings.HasSuffix(text, "]") && !strings.Contains(text, "\n") {
		return "", true
	}
	for {
		rest, isCut := cutPutIn(text)
		if !isCut {
			return text, isWrapped
		}
		text = rawjson.TrimSpace(rest)
		isWrapped = true
	}
}

// cutPutIn cuts one of the client's tags with its text off the beginning of a text.
func cutPutIn(text string) (rest string, isCut bool) {
	inner, isTag := strings.CutPrefix(text, "<")
	end := strings.IndexByte(inner, '>')
	if !isTag || end < 0 || !slices.Contains(putIn, inner[:end]) {
		return "", false
	}
	_, rest, isCut = strings.Cut(inner, "</"+inner[:end]+">")
	return rest, isCut
}

// typed implements agents.Agent.Typed: a slash command, a command of the shell, or the words behind
// the client's texts.
func typed(text string) (words string, isWrapped bool) {
	text = rawjson.TrimSpace(text)
	if strings.HasPrefix(text, "<command-") {
		name, isCommand := tagged(text, "command-name")
		args, _ := tagged(text, "command-args")
		if isCommand {
			return rawjson.TrimSpace("/" + strings.TrimPrefix(name, "/") + " " + args), true
		}
	}
	if strings.HasPrefix(text, "<bash-input>") {
		command, isCommand := tagged(text, "bash-input")
		if isCommand {
			return "! " + command, true
		}
	}
	return withoutPutIn(text)
}

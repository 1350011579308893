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

// unknownCommands begin the client's answer to a slash command that it does not know.
var unknownCommands = []string{"Unknown skill: ", "Unknown command: "}

// argsBegin begins the record with the arguments of such a command.
const argsBegin = "Args from unknown skill: "

// unknownArgs returns a person's words behind an unknown slash command, as a JSON text, or nil for
// another record and for no words.
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
	isOneLine := !strings.Contains(text, "\n")
	return isOneLine && slices.ContainsFunc(unknownCommands, func(begin string) bool {
		return strings.HasPrefix(text, begin)
	})
}

// isCaveat reports whether a record's content says that local commands follow.
func isCaveat(content rawjson.Value) bool {
	return bytes.Contains(content, []byte(`"<local-command-caveat>`))
}

// voice is a person's speech in a voice call.
type voice struct {
	content  rawjson.Value // a text or blocks
	isMeta   bool          // the client itself put it in
	isQueued bool          // it was said while the client worked
}

// voiceTalk returns the words of a record of a voice call. ok is false for other records.
func voiceTalk(r agents.Object) (spoken voice, ok bool) {
	isTalk := r.Member("type").Is("system") && r.Member("subtype").Is("voice_call_talk")
	if !isTalk || !r.Member("origin").Member("kind").Is("voice-call") {
		return voice{}, false
	}
	spoken.content = r.Member("blocks")
	if !spoken.content.IsArray() {
		spoken.content = r.Member("content")
	}
	command := r.Member("fold").Member("command")
	if command.IsObject() {
		spoken.isQueued = true
		spoken.isMeta = isClientsCommand(agents.Read(command))
	}
	return spoken, true
}

// interrupted begins the client's note that a person interrupted it.
const interrupted = "[Request interrupted by user"

// putIn are the tags of texts that the client adds to a person's message.
var putIn = []string{
	"ide_opened_file", "ide_selection", "ide_diagnostics", "system-reminder", "user-prompt-submit-hook",
	"session-start-hook", "new-diagnostics",
}

// isPutInWhole reports whether all texts of a person's record are the client's, and nothing but
// results of tools stands beside them. It returns false for content without a text.
func isPutInWhole(content rawjson.Value) bool {
	mayBePutIn := bytes.Contains(content, []byte(`"<`)) || bytes.Contains(content, []byte(interrupted))
	if !mayBePutIn { // as most content
		return false
	}
	if content.IsString() {
		return isPutInText(content)
	}
	texts := 0
	for block := range content.EachElement {
		typ := block.Member("type")
		switch {
		case typ.Is("tool_result"):
		case typ.Is("text") && isPutInText(block.Member("text")):
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

// withoutPutIn cuts the client's texts off the beginning of a trimmed text, and reports whether there was one. words
// is trimmed, and "" if the whole text is the client's.
func withoutPutIn(text string) (words string, isWrapped bool) {
	isOneLine := !strings.Contains(text, "\n")
	isInterruption := strings.HasPrefix(text, interrupted) && strings.HasSuffix(text, "]")
	if isInterruption && isOneLine {
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

// cutPutIn cuts one of the client's tags with its text off the beginning of a text. isCut is false for a text without
// them at its beginning, and for a tag without its end.
func cutPutIn(text string) (rest string, isCut bool) {
	inner, isTag := strings.CutPrefix(text, "<")
	name, inside, isNamed := strings.Cut(inner, ">")
	if !isTag || !isNamed || !slices.Contains(putIn, name) {
		return "", false
	}
	_, rest, isCut = strings.Cut(inside, "</"+name+">")
	return rest, isCut
}

// typed implements agents.Agent.Typed: it returns a slash command, a command of the shell, or the words behind
// the client's texts.
func typed(text string) (words string, isWrapped bool) {
	text = rawjson.TrimSpace(text)
	if strings.HasPrefix(text, "<command-") {
		name, isCommand := tagged(text, "command-name")
		args, _ := tagged(text, "command-args")
		if isCommand {
			command := "/" + strings.TrimPrefix(name, "/")
			return rawjson.TrimSpace(command + " " + args), true
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

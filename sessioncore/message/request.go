package message

import (
	"bytes"
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
)

// PromptEnding ends the customType of a person's words that an agent keeps outside the conversation,
// such as a goal or spoken words. The attribution of such an entry is user.
const PromptEnding = "/prompt"

// skillType is the customType of omp's message with the text of a skill.
const skillType = "skill-prompt"

// requestTypes are the customTypes of omp's messages that a person asked for, in an extension's
// name: a skill that was called by its name, and the prompt of a guest.
var requestTypes = map[string]bool{skillType: true, "collab-prompt": true}

// IsRequest reports whether a message, or an entry like one, is the request of a person: a message
// of a user that the program has not put in, or an extension's message that a person asked for
// (docs/format.md, Requests).
func IsRequest(m *Members) bool {
	if m[CustomType] == nil {
		return m.Role() == "user" && !m[Synthetic].Truthy()
	}
	kind, _ := m[CustomType].Text()
	isOfRequest := requestTypes[kind] || strings.HasSuffix(kind, PromptEnding)
	return isOfRequest && m[Attribution].Is("user")
}

// Request returns the words of a person's request, as the content of a message, with the images in
// it: without the texts that a program put around them. ok is false if it is none (IsRequest).
func Request(m *Members) (words rawjson.Value, ok bool) {
	if !IsRequest(m) {
		return nil, false
	}
	if m[CustomType] != nil {
		words := calledWith(m)
		if words != nil {
			return words, true
		}
	}
	return typedContent(m[Content]), true
}

// calledWith returns a person's call of an extension, nil if the details have none.
func calledWith(m *Members) rawjson.Value {
	details := m[Details]
	prompt := details.Member("prompt")
	if prompt.IsString() && prompt.Truthy() {
		return prompt
	}
	name, _ := details.Member("name").Text()
	if name == "" || !m[CustomType].Is(skillType) {
		return nil
	}
	args, _ := details.Member("args").Text()
	return rawjson.AppendQuoted(nil, skillCall(name, args))
}

// SkillOf returns the name of the skill in a person's request, the first one of several, or "".
func SkillOf(m *Members) string {
	if !IsRequest(m) {
		return ""
	}
	if m[CustomType].Is(skillType) {
		name, _ := m[Details].Member("name").Text()
		return name
	}
	if m[Content].IsString() {
		return skillIn(m[Content])
	}
	for block := range m[Content].EachElement {
		name := skillIn(textOfBlock(block))
		if name != "" {
			return name
		}
	}
	return ""
}

// skillIn returns the name of the skill in a user's text, or "".
func skillIn(v rawjson.Value) string {
	if !v.IsString() || !beginsWithSign(v) {
		return ""
	}
	text, _ := v.Text()
	name, _, _ := cutSkill(text)
	return name
}

// skillCall returns the words that call a skill.
func skillCall(name, args string) string {
	return strings.TrimSpace("/skill:" + name + " " + rawjson.TrimSpace(args))
}

// typedContent returns a content without the texts of programs, or the content itself if it has none or nothing
// would be left.
func typedContent(content rawjson.Value) rawjson.Value {
	if content.IsString() {
		typed, isWrapped := typedText(content)
		if isWrapped && typed != "" {
			return rawjson.AppendQuoted(nil, typed)
		}
		return content
	}
	var parts []rawjson.Value
	hasWrapped := false
	for block := range content.EachElement {
		typed, isWrapped := typedText(textOfBlock(block))
		if !isWrapped {
			parts = append(parts, block)
			continue
		}
		hasWrapped = true
		if typed != "" {
			parts = append(parts, textBlock(typed))
		}
	}
	if !hasWrapped || len(parts) == 0 {
		return content
	}
	return listOf(parts)
}

// FirstText returns the first text in a list of blocks that is not blank, or nil. Of a content that is a string it returns
// that.
func FirstText(content rawjson.Value) rawjson.Value {
	if content.IsString() {
		return content
	}
	for block := range content.EachElement {
		text := textOfBlock(block)
		if text.IsString() && !isBlank(text) {
			return text
		}
	}
	return nil
}

// isBlank reports whether a string has nothing but white space.
func isBlank(v rawjson.Value) bool {
	text, _ := v.Bytes()
	return len(bytes.TrimSpace(text)) == 0
}

// textOfBlock returns the text of a block, nil for other blocks.
func textOfBlock(block rawjson.Value) rawjson.Value {
	if block.IsString() {
		return block
	}
	b := Read(block)
	if b.Kind() != TextKind {
		return nil
	}
	return b[Text]
}

// textBlock returns a block with a text.
func textBlock(text string) rawjson.Value {
	block := []byte(`{"type":"text","text":`)
	block = rawjson.AppendQuoted(block, text)
	return append(block, '}')
}

// listOf returns a JSON list of values.
func listOf(values []rawjson.Value) rawjson.Value {
	list := rawjson.Value("[")
	for i, v := range values {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, v...)
	}
	return append(list, ']')
}

// typers are pi's function and the registered ones of agents.
var typers = []func(text string) (typed string, isWrapped bool){typedBehindSkill}

// RegisterTyped adds an agent's function that returns the person's words in a user's text, and
// whether the agent put anything around them. Call it only from an init.
func RegisterTyped(typed func(text string) (typed string, isWrapped bool)) {
	typers = append(typers, typed)
}

// wrapperSigns begin the texts of programs.
const wrapperSigns = "<[#"

// typedText returns the person's words in a text, and whether a program put anything around them. Without that, and for
// other values, it returns "". Most texts are not decoded for it.
func typedText(v rawjson.Value) (typed string, isWrapped bool) {
	if !v.IsString() || !beginsWithSign(v) {
		return "", false
	}
	text, _ := v.Text()
	for _, typer := range typers {
		typed, isWrapped = typer(text)
		if isWrapped {
			return typed, true
		}
	}
	return "", false
}

// mostSpace bounds the bytes of a string that are decoded to find its first sign.
const mostSpace = 64

// beginsWithSign reports whether a string may begin a program's text, by its first sign.
func beginsWithSign(v rawjson.Value) bool {
	body := v[1 : len(v)-1]
	end := rawjson.CutPoint(body, mostSpace)
	head := rawjson.AppendDecoded(nil, body[:end])
	text := rawjson.TrimSpace(string(head))
	return text != "" && strings.ContainsRune(wrapperSigns, rune(text[0]))
}

// These parts stand in a message of pi around a skill's text; a person's words follow the last one.
const (
	skillBegin    = `<skill name="`
	skillLocation = `" location="`
	skillOpened   = "\">\n"
	skillEnd      = "\n</skill>"
	skillBehind   = "\n\n"
)

// typedBehindSkill returns a call of a skill in the person's words, if a text begins with a skill.
func typedBehindSkill(text string) (typed string, isWrapped bool) {
	name, args, isSkill := cutSkill(text)
	if !isSkill {
		return "", false
	}
	return skillCall(name, args), true
}

// cutSkill cuts a skill off the beginning of a text: its name, and the person's words behind it.
func cutSkill(text string) (name, args string, isSkill bool) {
	head, hasBegin := strings.CutPrefix(text, skillBegin)
	name, rest, hasName := strings.Cut(head, skillLocation)
	_, rest, isOpened := strings.Cut(rest, skillOpened)
	hasHead := hasBegin && hasName && isOpened
	if !hasHead || strings.ContainsAny(name, "\"\n") {
		return "", "", false
	}
	for { // the skill's text may have its own end in it
		_, behind, isClosed := strings.Cut(rest, skillEnd)
		if !isClosed {
			return "", "", false
		}
		if behind == "" || strings.HasPrefix(behind, skillBehind) {
			return name, behind, true
		}
		rest = behind
	}
}

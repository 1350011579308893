package view

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/markdown"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
	"sessionfs/sessioncore/report"
)

// toolCall is a call in an assistant's message, as results refer to it.
type toolCall struct {
	id        string
	arguments rawjson.Value
}

const (
	// maxCalls is how many calls of one message results can refer to, and how many arguments of a
	// call have a note.
	maxCalls = 200
	// maxAbout is how many characters of a call's first argument its result repeats.
	maxAbout = 60
)

// intentKey is the argument for the model's reason for a call; the client adds it to
// the tool's schema.
const intentKey = "_i"

// argument is an argument of a call, or of one of several edits in it.
type argument struct {
	rawjson.Member
	role message.ArgumentRole
}

// argumentsOf returns the arguments of a call of a tool, with their roles.
func argumentsOf(tool string, v rawjson.Value) (list []argument) {
	for m := range v.EachMember {
		role := message.ArgumentOf(tool, m.Name()).Role
		list = append(list, argument{Member: m, role: role})
	}
	return list
}

// toolCall adds a call: a line with the tool's name and the intent, and the arguments as its parts.
func (b *builder) toolCall(call *message.Members) {
	tool := cmp.Or(b.word(call[message.Name]), b.word(call[message.ToolName]), "?")
	all := argumentsOf(tool, call[message.Arguments])
	command := commandOf(all)
	intent := shownLine(call[message.Intent], maxProblem)
	var list []argument // without intents
	for _, a := range all {
		isOfCommand := len(command) > 0 && a.role == message.IntentRole
		isIntent := isOfCommand || a.KeyIs(intentKey)
		if !isIntent {
			list = append(list, a)
			continue
		}
		if intent == "" {
			intent = shownLine(a.Value, maxProblem)
		}
	}
	b.line(callLine, span{style: strongCodeStyle, text: tool}, span{text: intent})
	begin := len(b.blocks.body)
	isEdit := b.edit(tool, list)
	if !isEdit {
		b.parameters(call[message.Arguments], list, command)
	}
	line := &b.blocks.body[begin-1]
	line.parts = len(b.blocks.body) - begin
	line.info = aboutCall(list, command)
	line.call, _ = call[message.ID].Text()
}

// aboutCall returns the argument that tells a call from others: the file, else the command unless that is a patch,
// else the first text. It is "" for none.
func aboutCall(list []argument, command rawjson.Value) (about string) {
	isPatch := languageOf(command, "") != ""
	if len(command) > 0 && !isPatch {
		about = shownLine(command, maxProblem)
	}
	for _, a := range list {
		if a.role == message.FileRole && a.Value.IsString() {
			return shownEnd(a.Value)
		}
		if about == "" && len(command) == 0 {
			about = shownEnd(a.Value)
		}
	}
	return about
}

// parameters adds arguments as code: a command, or a single text, as it is, others with their
// names.
func (b *builder) parameters(v rawjson.Value, list []argument, command rawjson.Value) {
	switch {
	case len(command) > 0:
		b.output(languageOf(command, "sh"), command)
		b.named(list, message.CommandRole)
	case v.IsString():
		b.output(languageOf(v, ""), v)
	case v.IsObject() && len(list) == 0: // there is none, or only an intent
	case isOneText(list):
		text := list[0].Value
		b.output(languageOf(text, ""), text)
	default:
		b.data(v)
	}
}

// isOneText reports whether there is one argument alone, a text that is not empty.
func isOneText(list []argument) bool {
	if len(list) != 1 {
		return false
	}
	only := list[0].Value
	return only.IsString() && len(only) > len(`""`)
}

// named adds a note for each argument that has none of the roles.
func (b *builder) named(list []argument, shown ...message.ArgumentRole) {
	left := maxCalls
	for _, a := range list {
		if slices.Contains(shown, a.role) {
			continue
		}
		left--
		if left < 0 {
			b.cut = true
			return
		}
		b.note(shownLine(a.Key, maxKey)+":", b.scalar(a.Value))
	}
}

// languageOf returns the language of a text among arguments: diff for a patch, also in a command, or otherwise.
func languageOf(v rawjson.Value, otherwise string) string {
	if bytes.Contains(v, []byte("*** Begin Patch")) {
		return "diff"
	}
	return otherwise
}

// commandOf returns the command that is run in a shell, nil if there is none: a text, or the last
// of a list that begins with the shell or is a patch.
func commandOf(list []argument) (command rawjson.Value) {
	for _, a := range list {
		if a.role != message.CommandRole {
			continue
		}
		var words []rawjson.Value
		for word := range a.Value.EachElement {
			words = append(words, word)
		}
		switch {
		case a.Value.IsString() && len(a.Value) > len(`""`):
			return a.Value
		case isShell(words):
			return words[2]
		case len(words) == 2 && words[0].Is("apply_patch") && words[1].IsString():
			return words[1]
		}
	}
	return nil
}

// isShell reports whether words are a shell's command line: sh -c COMMAND.
func isShell(words []rawjson.Value) bool {
	if len(words) != 3 || !words[2].IsString() {
		return false
	}
	return words[1].Is("-c") || words[1].Is("-lc")
}

// data adds any JSON value.
func (b *builder) data(v rawjson.Value) {
	if v.Missing() {
		return
	}
	t := valueText{b: b, left: min(maxValue, b.outputLeft)}
	t.write(v)
	b.outputLeft -= min(len(t.out), b.outputLeft)
	b.code("", t.out)
}

// result adds a tool's result: a line, and the output as its parts. If the message before called several tools, the
// line says which call the result answers. named says that the entry is the result, and not something that has it
// in it.
func (b *builder) result(m *message.Members, named bool) {
	tool := codeOf(b.word(m[message.ToolName]))
	about := codeOf(b.about(m[message.CallID]))
	b.line(resultLine, span{style: strongStyle, text: "Result"}, tool, about, b.time(clockLayout))
	if named {
		b.more(b.name())
	}
	if m[message.IsError].Truthy() {
		b.more(span{style: strongStyle, text: "error"})
	}
	head := len(b.blocks.body) - 1
	message.EachNested(m, b.nestedCall)
	before := len(b.blocks.body)
	b.each(m[message.Content], b.resultBlock)
	if len(b.blocks.body) == before {
		b.note("No output.")
	}
	line := &b.blocks.body[head]
	line.parts = len(b.blocks.body) - 1 - head
	line.failed = isFailed(m)
}

// nestedCall adds a call that a tool made itself.
func (b *builder) nestedCall(call *message.Members) {
	b.blocksLeft--
	if b.blocksLeft < 0 {
		b.cut = true
		return
	}
	b.toolCall(call)
	if call[message.Truncated].Truthy() {
		b.note("Its arguments were not recorded, as they are long.")
	}
	if call[message.IsError].Truthy() {
		b.note("Failed:", shownLine(call[message.ErrorMessage], maxProblem))
	}
}

// isFailed reports whether a tool's result is an error, or a command's with another exit status than 0.
func isFailed(m *message.Members) bool {
	if m[message.IsError].Truthy() {
		return true
	}
	for v := range m[message.Content].EachElement {
		inner := message.Read(v)
		if inner.Kind() == message.TextKind {
			_, exit := outputOf(inner[message.Text])
			if exit.IsNumber() && exit.Truthy() {
				return true
			}
		}
	}
	return false
}

// resultBlock adds a block of a result: texts unchanged, and images.
func (b *builder) resultBlock(v rawjson.Value) {
	if b.outputLeft == 0 {
		b.cut = true
		return
	}
	if v.IsString() {
		b.output("", v)
		return
	}
	switch m := message.Read(v); m.Kind() {
	case message.TextKind:
		output, exit := outputOf(m[message.Text])
		b.output("", output)
		b.exitStatus(exit)
	case message.ImageKind:
		b.picture(&m)
	default:
		b.data(v)
	}
}

// outputOf returns the output of a tool. Some tools give it back in an object, with the exit
// status, as a text.
func outputOf(text rawjson.Value) (output, exit rawjson.Value) {
	if len(text) > maxProse || !bytes.HasPrefix(text, []byte(`"{\"output\":`)) {
		return text, nil
	}
	decoded, _ := text.Text()
	object := rawjson.Value(decoded)
	if !rawjson.IsValidObject(object) {
		return text, nil
	}
	output = object.Member("output")
	if !output.IsString() {
		return text, nil
	}
	return output, object.Member("metadata").Member("exit_code")
}

// about returns the first argument of the call with an id, if its message called more than one tool; else "". It
// notes that the blocks depend on that message. An error of the storage becomes b.err.
func (b *builder) about(id rawjson.Value) string {
	if !id.IsString() {
		return ""
	}
	asked := report.AnswerAbove(b.s, b.entry)
	b.blocks.asked = asked
	b.blocks.flags |= answersCall
	if asked == sessioncore.NoEntry {
		return ""
	}
	if b.callsOf != asked {
		text, err := b.s.EntryText(asked)
		if err != nil {
			b.err = err
			return ""
		}
		b.answered(asked, text)
	}
	if len(b.calls) == 1 { // the result can answer no other
		return ""
	}
	for i := range b.calls {
		if id.Is(b.calls[i].id) {
			return b.calls[i].about()
		}
	}
	return ""
}

// answered gives the builder the message that the next results belong to. Its text must stay until
// they are made.
func (b *builder) answered(asked sessioncore.Entry, text rawjson.Value) {
	b.calls = callsIn(text.Member("message").Member("content"))
	b.callsOf = asked
}

// callsIn returns the calls in an assistant's content, at most maxCalls.
func callsIn(content rawjson.Value) (calls []toolCall) {
	for v := range content.EachElement {
		m := message.Read(v)
		if m.Kind() != message.CallKind || len(calls) == maxCalls {
			continue
		}
		id, _ := m[message.ID].Text()
		calls = append(calls, toolCall{id: id, arguments: m[message.Arguments]})
	}
	return calls
}

// about returns the first argument of a call that has a text, "" for none.
func (c *toolCall) about() string {
	for argument := range c.arguments.EachMember {
		if argument.KeyIs(intentKey) {
			continue
		}
		about := shownEnd(argument.Value)
		if about != "" {
			return about
		}
	}
	return ""
}

// shownEnd returns a call's argument as one line. Of a long path it keeps the end, which says more
// than the beginning.
func shownEnd(v rawjson.Value) string {
	const longestPath = 10 * maxAbout
	line := shownLine(v, longestPath)
	count := utf8.RuneCountInString(line)
	if count <= maxAbout {
		return line
	}
	isPath := strings.Contains(line, "/") && !strings.Contains(line, " ")
	if !isPath {
		return string(markdown.AppendLine(nil, []byte(line), maxAbout))
	}
	for range count - maxAbout {
		_, size := utf8.DecodeRuneInString(line)
		line = line[size:]
	}
	return "…" + line
}

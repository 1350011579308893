package view

import (
	"bytes"
	"cmp"
	"slices"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/markdown"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
)

// toolCall is a call in an assistant's message, as results refer to it.
type toolCall struct {
	id    string
	about string // the first argument
}

const (
	// maxCalls is how many calls of one message results can refer to.
	maxCalls = 200
	// maxAbout is how many characters of a call's first argument its result repeats.
	maxAbout = 60
)

// intentKey is the argument in which the model says what a call is for; the client adds it to the tool's schema.
const intentKey = "_i"

// toolCall adds a call: the tool's name, the intent, and the arguments.
func (b *builder) toolCall(call *message.Members) {
	tool := cmp.Or(b.word(call[message.Name]), b.word(call[message.ToolName]), "?")
	intent, command := shownLine(call[message.Intent], maxProblem), commandOf(tool, call[message.Arguments])
	for m := range call[message.Arguments].EachMember {
		if intent == "" && isIntent(tool, m, command) {
			intent = shownLine(m.Value, maxProblem)
		}
	}
	b.line(callLine, span{style: strongCodeStyle, text: tool}, span{text: intent})
	if !b.edit(tool, call[message.Arguments]) {
		b.parameters(tool, call[message.Arguments], command)
	}
}

// parameters renders arguments in a code block: a command, or a single text, as it is, others with their names.
func (b *builder) parameters(tool string, v, command rawjson.Value) {
	switch {
	case v.Missing():
		return
	case v.IsString():
		b.output(languageOf(v, ""), v)
		return
	}
	if len(command) > 0 {
		b.output(languageOf(command, "sh"), command)
		for m := range v.EachMember {
			if !isIntent(tool, m, command) && !isCommand(tool, m) {
				b.note(shownLine(m.Key, maxKey)+":", b.scalar(m.Value))
			}
		}
		return
	}
	var only rawjson.Member
	n := 0
	for m := range v.EachMember {
		if !isIntent(tool, m, command) {
			only = m
			n++
		}
	}
	switch {
	case v.IsObject() && n == 0:
	case n == 1 && only.Value.IsString() && len(only.Value) > 2:
		b.output(languageOf(only.Value, ""), only.Value)
	default:
		b.data(v)
	}
}

// languageOf returns the language of a text among arguments: a patch is one in a command too.
func languageOf(v rawjson.Value, otherwise string) string {
	if bytes.Contains(v, []byte("*** Begin Patch")) {
		return "diff"
	}
	return otherwise
}

// isIntent reports whether an argument of a tool is the reason for a call.
func isIntent(tool string, m rawjson.Member, command rawjson.Value) bool {
	return m.KeyIs(intentKey) || len(command) > 0 && message.ArgumentOf(tool, m.Name()).Role == message.IntentRole
}

func isCommand(tool string, m rawjson.Member) bool {
	return message.ArgumentOf(tool, m.Name()).Role == message.CommandRole
}

// commandOf returns the command that is run in a shell, nil if there is none: a text, or the last of a list that begins with
// the shell or is a patch.
func commandOf(tool string, arguments rawjson.Value) (command rawjson.Value) {
	for m := range arguments.EachMember {
		if !isCommand(tool, m) {
			continue
		}
		var words []rawjson.Value
		for word := range m.Value.EachElement {
			words = append(words, word)
		}
		switch {
		case m.Value.IsString() && len(m.Value) > len(`""`):
			return m.Value
		case len(words) == 3 && (words[1].Is("-lc") || words[1].Is("-c")) && words[2].IsString():
			return words[2]
		case len(words) == 2 && words[0].Is("apply_patch") && words[1].IsString():
			return words[1]
		}
	}
	return nil
}

// data adds any JSON value.
func (b *builder) data(v rawjson.Value) {
	if v.Missing() {
		return
	}
	t := valueText{excerpt: &b.excerpt, left: min(maxValue, b.outputLeft)}
	t.write(v)
	b.outputLeft -= min(len(t.out), b.outputLeft)
	b.cut = b.cut || t.cut
	b.code("", t.out)
}

// result adds a tool's result. If the message before called several tools, it says which call the result answers. named
// says that the entry is the result, and not something that has it in it.
func (b *builder) result(m *message.Members, named bool) {
	b.line(resultLine, span{style: strongStyle, text: "Result"}, codeOf(b.word(m[message.ToolName])), codeOf(b.about(m[message.CallID])),
		b.time(clockLayout))
	if named {
		b.more(span{style: nameStyle, text: b.s.Name(b.entry)})
	}
	if m[message.IsError].Truthy() {
		b.more(span{style: strongStyle, text: "error"})
	}
	before := len(b.blocks.body)
	b.contentBlocks(m[message.Content], true)
	if len(b.blocks.body) == before {
		b.note("No output.")
	}
}

// resultBlock renders a block of a result: texts unchanged, and images.
func (b *builder) resultBlock(v rawjson.Value) {
	if v.IsString() {
		b.output("", v)
		return
	}
	switch m := message.Read(v); m.Kind() {
	case message.TextKind:
		output, exit := outputOf(m[message.Text])
		b.output("", output)
		if exit.IsNumber() && exit.Truthy() {
			b.note("Exit status", b.scalar(exit))
		}
	case message.ImageKind:
		b.picture(&m)
	default:
		b.data(v)
	}
}

// outputOf returns what a tool printed. Some tools give that back in an object, with the exit status, as a text.
func outputOf(text rawjson.Value) (output, exit rawjson.Value) {
	if len(text) > maxProse || !bytes.HasPrefix(text, []byte(`"{\"output\":`)) {
		return text, nil
	}
	decoded, _ := text.Text()
	object := rawjson.Value(decoded)
	if !rawjson.IsValidObject(object) || !object.Member("output").IsString() {
		return text, nil
	}
	return object.Member("output"), object.Member("metadata").Member("exit_code")
}

// about returns the first argument of the call id, if the message called more than one tool.
func (b *builder) about(id rawjson.Value) string {
	b.blocks.flags |= answersCall
	asked := b.blocks.asked
	if asked == sessioncore.NoEntry || !id.IsString() {
		return ""
	}
	if b.callsOf != asked {
		text, err := b.s.EntryText(asked)
		if err != nil {
			b.err = err
			return ""
		}
		b.calls, b.callsOf = callsIn(text.Member("message").Member("content")), asked
	}
	for i := range b.calls {
		if len(b.calls) > 1 && id.Is(b.calls[i].id) {
			return b.calls[i].about
		}
	}
	return ""
}

// callsIn returns the calls in an assistant's content, at most maxCalls.
func callsIn(content rawjson.Value) (calls []toolCall) {
	for v := range content.EachElement {
		m := message.Read(v)
		if m.Kind() != message.CallKind || len(calls) == maxCalls {
			continue
		}
		id, _ := m[message.ID].Text()
		call := toolCall{id: id}
		for argument := range m[message.Arguments].EachMember {
			if call.about == "" && !argument.KeyIs(intentKey) {
				call.about = shownEnd(argument.Value)
			}
		}
		calls = append(calls, call)
	}
	return calls
}

// shownEnd returns a call's argument as one line. Of a long path it keeps the end, which says more than the
// beginning.
func shownEnd(v rawjson.Value) string {
	line := []rune(shownLine(v, 10*maxAbout))
	if len(line) > maxAbout && !slices.Contains(line, ' ') && slices.Contains(line, '/') {
		return "…" + string(line[len(line)-maxAbout:])
	}
	return string(markdown.AppendLine(nil, []byte(string(line)), maxAbout))
}

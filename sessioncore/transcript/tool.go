package transcript

import (
	"bytes"
	"unicode/utf8"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/markdown"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
)

// toolCall is a call in an assistant's message, as results refer to it.
type toolCall struct {
	id    string
	about []byte // the first argument
}

const (
	// maxCalls is how many calls of one message results can refer to.
	maxCalls = 200
	// maxAbout is how many characters of a call's first argument its result repeats.
	maxAbout = 60
)

// intentKey is the argument in which the model says what a call is for; the client adds it to the tool's schema.
const intentKey = "_i"

// toolCall renders a call: the tool's name, the intent, and the arguments.
func (w *renderer) toolCall(call *message.Members) {
	w.begin()
	w.body = append(w.body, "**"...)
	name := w.line(call[message.Name])
	if len(name) == 0 {
		if name = w.line(call[message.ToolName]); len(name) == 0 {
			name = []byte("?")
		}
	}
	w.body = append(markdown.AppendCode(w.body, name), "**"...)
	tool := string(name)
	intent, command := shownLine(call[message.Intent], maxProblem), commandOf(tool, call[message.Arguments])
	for m := range call[message.Arguments].EachMember {
		if len(intent) == 0 && isIntent(tool, m, command) {
			intent = shownLine(m.Value, maxProblem)
		}
	}
	if len(intent) > 0 {
		w.body = markdown.AppendText(append(w.body, " — "...), intent)
	}
	w.body = append(w.body, '\n')
	if !w.edit(tool, call[message.Arguments]) {
		w.parameters(tool, call[message.Arguments], command)
	}
}

// parameters renders arguments in a code block: a command, or a single text, as it is, others with their names.
func (w *renderer) parameters(tool string, v, command rawjson.Value) {
	switch {
	case v.Missing():
		return
	case v.IsString():
		w.output(languageOf(v, ""), v)
		return
	}
	if len(command) > 0 {
		w.output(languageOf(command, "sh"), command)
		for m := range v.EachMember {
			if !isIntent(tool, m, command) && !isCommand(tool, m) {
				w.note(string(markdown.AppendText(nil, shownLine(m.Key, maxKey)))+":", w.scalar(m.Value))
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
		w.output(languageOf(only.Value, ""), only.Value)
	default:
		w.data(v)
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

// data renders any JSON value.
func (w *renderer) data(v rawjson.Value) {
	if v.Missing() {
		return
	}
	t := valueText{excerpt: &w.excerpt, left: min(maxValue, w.outputLeft)}
	t.write(v)
	w.outputLeft -= min(len(t.out), w.outputLeft)
	w.cut = w.cut || t.cut
	w.fenced("", t.out)
}

// result renders a tool's result. If the message before called several tools, it says which call the result answers. named
// says that the entry is the result, and not something that has it in it.
func (w *renderer) result(m *message.Members, named bool) {
	w.begin()
	w.body = append(w.body, "**Result**"...)
	separate := func() { w.body = append(w.body, " · "...) }
	if name := w.line(m[message.ToolName]); len(name) > 0 {
		separate()
		w.body = markdown.AppendCode(w.body, name)
	}
	if about := w.about(m[message.CallID]); len(about) > 0 {
		separate()
		w.body = markdown.AppendCode(w.body, about)
	}
	if when := w.time(shownClock); when != "" {
		separate()
		w.body = append(w.body, when...)
	}
	if named {
		w.size.flags |= partNamed
	}
	if named && !w.bare {
		separate()
		w.body = w.appendName(w.body)
	}
	if m[message.IsError].Truthy() {
		separate()
		w.body = append(w.body, "**error**"...)
	}
	w.body = append(w.body, '\n')
	before := len(w.body)
	w.blocks(m[message.Content], true)
	if len(w.body) == before {
		w.note("No output.")
	}
}

// resultBlock renders a block of a result: texts unchanged, and images.
func (w *renderer) resultBlock(v rawjson.Value) {
	if v.IsString() {
		w.output("", v)
		return
	}
	switch b := message.Read(v); b.Kind() {
	case message.TextKind:
		output, exit := outputOf(b[message.Text])
		w.output("", output)
		if exit.IsNumber() && exit.Truthy() {
			w.note("Exit status", w.scalar(exit))
		}
	case message.ImageKind:
		w.picture(&b)
	default:
		w.data(v)
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
func (w *renderer) about(id rawjson.Value) []byte {
	w.size.flags |= partAsked
	w.size.asked = w.asked
	if w.asked == sessioncore.NoEntry || !id.IsString() {
		return nil
	}
	if w.callsOf != w.asked {
		text, err := w.s.EntryText(w.asked)
		if err != nil {
			w.err = err
			return nil
		}
		w.calls, w.callsOf = callsIn(text.Member("message").Member("content")), w.asked
	}
	if len(w.calls) < 2 {
		return nil
	}
	for i := range w.calls {
		if id.Is(w.calls[i].id) {
			return w.calls[i].about
		}
	}
	return nil
}

// callsIn returns the calls in an assistant's content, at most maxCalls.
func callsIn(content rawjson.Value) (calls []toolCall) {
	for v := range content.EachElement {
		b := message.Read(v)
		if b.Kind() != message.CallKind || len(calls) == maxCalls {
			continue
		}
		id, _ := b[message.ID].Text()
		call := toolCall{id: id}
		for m := range b[message.Arguments].EachMember {
			if !m.KeyIs(intentKey) && len(call.about) == 0 {
				call.about = shownEnd(m.Value)
			}
		}
		calls = append(calls, call)
	}
	return calls
}

// shownEnd returns a call's argument as one line. Of a long path it keeps the end, which says more than the
// beginning.
func shownEnd(v rawjson.Value) []byte {
	line := shownLine(v, 10*maxAbout)
	if n := utf8.RuneCount(line); n <= maxAbout {
		return line
	} else if bytes.IndexByte(line, ' ') < 0 && bytes.IndexByte(line, '/') >= 0 {
		for ; n > maxAbout; n-- {
			_, size := utf8.DecodeRune(line)
			line = line[size:]
		}
		return append([]byte("…"), line...)
	}
	return markdown.AppendLine(nil, line, maxAbout)
}

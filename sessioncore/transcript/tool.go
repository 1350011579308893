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
	intent := shownLine(call[message.Intent], maxProblem)
	if len(intent) == 0 {
		intent = shownLine(call[message.Arguments].Member(intentKey), maxProblem)
	}
	if len(intent) > 0 {
		w.body = markdown.AppendText(append(w.body, " — "...), intent)
	}
	w.body = append(w.body, '\n')
	w.parameters(call[message.Arguments])
}

// parameters renders arguments in a code block: a single text as it is, others with their names.
func (w *renderer) parameters(v rawjson.Value) {
	switch {
	case v.Missing():
		return
	case v.IsString():
		w.output("", v)
		return
	}
	var only rawjson.Member
	n := 0
	v.EachMember(func(m rawjson.Member) bool {
		if !m.KeyIs(intentKey) {
			only = m
			n++
		}
		return true
	})
	switch {
	case v.IsObject() && n == 0:
	case n == 1 && only.Value.IsString() && len(only.Value) > 2:
		info := ""
		if only.KeyIs("command") || only.KeyIs("cmd") {
			info = "sh"
		}
		w.output(info, only.Value)
	default:
		w.data(v)
	}
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

// result renders a tool's result. If the message before called several tools, it says which call the result answers.
func (w *renderer) result(m *message.Members) {
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
	if when := w.time("15:04:05"); when != "" {
		separate()
		w.body = append(w.body, when...)
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
		w.output("", b[message.Text])
	case message.ImageKind:
		w.picture(&b)
	default:
		w.data(v)
	}
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
	content.EachElement(func(v rawjson.Value, _ int) bool {
		if b := message.Read(v); b.Kind() == message.CallKind {
			id, _ := b[message.ID].Text()
			call := toolCall{id: id}
			b[message.Arguments].EachMember(func(m rawjson.Member) bool {
				if !m.KeyIs(intentKey) {
					call.about = shownEnd(m.Value)
				}
				return len(call.about) == 0
			})
			calls = append(calls, call)
		}
		return len(calls) < maxCalls
	})
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

package sessioncore

import (
	"bytes"
	"unicode/utf8"
)

// toolCall is a call in an assistant's message, as its result names it.
type toolCall struct {
	id    string
	about []byte // its first argument
}

const (
	// maxCalls is how many calls of a message their results are found among.
	maxCalls = 200
	// maxAbout is how much of a call's first argument its result repeats, in characters.
	maxAbout = 60
)

// intentKey is the argument in which the client has the model say what a call is for.
const intentKey = "_i"

// toolCall renders a call: the tool's name, what the model says that it is for, and the arguments.
func (w *transcriptWriter) toolCall(call *contentBlock) {
	w.begin()
	w.body = append(w.body, "**"...)
	name := w.line(call.name)
	if len(name) == 0 {
		if name = w.line(call.tool); len(name) == 0 {
			name = []byte("?")
		}
	}
	w.body = append(appendCode(w.body, name), "**"...)
	intent := shownLine(call.intent, maxProblem)
	if len(intent) == 0 {
		intent = shownLine(call.parameters.member(intentKey), maxProblem)
	}
	if len(intent) > 0 {
		w.body = appendPlain(append(w.body, " — "...), intent)
	}
	w.body = append(w.body, '\n')
	w.parameters(call.parameters)
}

// parameters renders arguments in a code block: a text as it is, several by name.
func (w *transcriptWriter) parameters(v value) {
	switch {
	case v.missing():
		return
	case v.isString():
		w.output("", v)
		return
	}
	var only member
	n := 0
	v.eachMember(func(m member) bool {
		if !m.keyIs(intentKey) {
			only = m
			n++
		}
		return true
	})
	switch {
	case v.isObject() && n == 0:
	case n == 1 && only.value.isString() && len(only.value) > 2:
		info := ""
		if only.keyIs("command") || only.keyIs("cmd") {
			info = "sh"
		}
		w.output(info, only.value)
	default:
		w.data(v)
	}
}

// data renders a JSON value of any shape.
func (w *transcriptWriter) data(v value) {
	if v.missing() {
		return
	}
	t := valueText{excerpt: &w.excerpt, left: min(maxValue, w.outputLeft)}
	t.write(v)
	w.outputLeft -= min(len(t.out), w.outputLeft)
	w.cut = w.cut || t.cut
	w.fenced("", t.out)
}

// result renders what a tool answered. Where the message before it called several tools, it says which call
// it answers.
func (w *transcriptWriter) result(f *messageFields) {
	w.begin()
	w.body = append(w.body, "**Result**"...)
	separate := func() { w.body = append(w.body, " · "...) }
	if name := w.line(f.tool); len(name) > 0 {
		separate()
		w.body = appendCode(w.body, name)
	}
	if about := w.about(f.call); len(about) > 0 {
		separate()
		w.body = appendCode(w.body, about)
	}
	if when := w.time("15:04:05"); when != "" {
		separate()
		w.body = append(w.body, when...)
	}
	if f.failed.truthy() {
		separate()
		w.body = append(w.body, "**error**"...)
	}
	w.body = append(w.body, '\n')
	before := len(w.body)
	w.resultContent(f.content)
	if len(w.body) == before {
		w.note("No output.")
	}
}

// resultContent renders the content of a result: texts as they are, and pictures.
func (w *transcriptWriter) resultContent(v value) {
	switch {
	case v.missing():
	case v.isString():
		w.output("", v)
	case v.isArray():
		v.eachElement(func(block value, _ int) bool {
			if w.blocksLeft--; w.blocksLeft < 0 || w.outputLeft == 0 {
				w.cut = true
				return false
			}
			w.resultBlock(block)
			return true
		})
	default:
		w.resultBlock(v)
	}
}

func (w *transcriptWriter) resultBlock(v value) {
	if v.isString() {
		w.output("", v)
		return
	}
	switch b := readBlock(v); {
	case b.isText():
		w.output("", b.text)
	case b.isPicture():
		w.picture(&b)
	default:
		w.data(v)
	}
}

// about returns the first argument of the call with an id, where the message that called for it called more
// than one tool.
func (w *transcriptWriter) about(id value) []byte {
	w.size.flags |= partAsked
	w.size.asked = w.asked
	if w.asked == NoEntry || !id.isString() {
		return nil
	}
	if w.callsOf != w.asked {
		text, err := w.s.checked(w.asked)
		if err != nil {
			w.err = err
			return nil
		}
		w.calls, w.callsOf = callsIn(text.member("message").member("content")), w.asked
	}
	if len(w.calls) < 2 {
		return nil
	}
	for i := range w.calls {
		if id.is(w.calls[i].id) {
			return w.calls[i].about
		}
	}
	return nil
}

// callsIn finds the calls in an assistant's content.
func callsIn(content value) (calls []toolCall) {
	content.eachElement(func(v value, _ int) bool {
		if b := readBlock(v); b.isCall() {
			id, _ := b.id.text()
			call := toolCall{id: id}
			b.parameters.eachMember(func(m member) bool {
				if !m.keyIs(intentKey) {
					call.about = shownEnd(m.value)
				}
				return len(call.about) == 0
			})
			calls = append(calls, call)
		}
		return len(calls) < maxCalls
	})
	return calls
}

// shownEnd returns a call's argument as a line: of a long path its end, which tells more than its beginning.
func shownEnd(v value) []byte {
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
	return appendLine(nil, line, maxAbout)
}

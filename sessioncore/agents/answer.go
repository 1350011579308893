package agents

import (
	"slices"
	"strconv"

	"sessionfs/sessioncore/internal/rawjson"
)

// Answer is an answer of the model that may still change, with the entries that follow it.
type Answer struct {
	Entry
	key     string
	from    origin // its record
	builder *Builder
	blocks  Blocks
	hasCall bool
	model   []byte
	usage   Usage
	stop    string
	failure []byte
	results []Entry // of its calls, from its own record
	after   []follower
	size    int // bytes of after
}

// follower is an entry behind an answer. onEnd: it hangs on the answer's last result, and moves
// with that.
type follower struct {
	Entry
	onEnd bool
}

// Answer returns the open answer with that key, or begins one; then everything before is final.
func (b *Builder) Answer(key string) *Answer {
	a := b.open
	if a == nil || a.key != key {
		b.Close()
		b.settings()
		b.writeHeader()
		a = &Answer{Entry: Entry{Type: "message", ID: b.nextID(), Parent: b.at, Time: slices.Clone(b.from.time)}}
		a.key, a.builder, a.model, b.open = key, b, b.model.value, a
		b.at, b.last = a.ID, a.ID
	} else if a.from.id == b.from.id {
		b.from.part = max(a.from.part, b.from.part)
	}
	a.from = origin{id: b.from.id, part: b.from.part, line: b.from.line}
	if n := len(a.Lines); n == 0 || a.Lines[n-1] != b.from.line {
		a.Lines = append(a.Lines, b.from.line)
	}
	return a
}

// Open returns the answer begun last, or nil if it is final.
func (b *Builder) Open() *Answer { return b.open }

// Close makes the open answer final.
func (b *Builder) Close() {
	if b.open != nil {
		b.out = b.open.appendTo(b.out)
		b.open = nil
	}
}

// Replace empties the open answer if it has that key, and removes its results but no other entries.
// It returns false for another key.
func (b *Builder) Replace(key string) bool {
	a := b.open
	if a == nil || a.key != key {
		return false
	}
	end := a.End()
	for i := range a.results {
		delete(b.ids, a.results[i].ID)
	}
	if b.at == end {
		b.at = a.ID
	}
	if b.last == end {
		b.last = a.ID
	}
	a.blocks, a.results, a.hasCall = nil, nil, false
	a.model, a.usage, a.stop, a.failure = b.model.value, Usage{}, "", nil
	return true
}

// End returns the entry on which the next one hangs: the answer's last own result, else the answer.
func (a *Answer) End() string {
	if n := len(a.results); n > 0 {
		return a.results[n-1].ID
	}
	return a.ID
}

// Thinking adds a thought. Its signature may be missing.
func (a *Answer) Thinking(text, signature rawjson.Value) {
	if !text.IsString() {
		text = rawjson.Value(`""`)
	}
	a.blocks.begin(`{"type":"thinking"`)
	a.blocks = AppendText(AppendMember(a.blocks, "thinking", text), "thinkingSignature", signature)
	a.blocks.end()
}

// Text adds a text unless it is empty.
func (a *Answer) Text(text rawjson.Value) {
	if !text.Is("") {
		a.blocks.Text(text)
	}
}

// Call adds a call of a tool. A call without an id gets one that no result can have.
func (a *Answer) Call(id, name, arguments rawjson.Value) {
	if !id.IsString() {
		id = rawjson.AppendQuoted(nil, a.ID+"/"+strconv.Itoa(len(a.blocks)))
	}
	if !name.IsString() {
		name = rawjson.Value(`"unknown"`)
	}
	a.builder.Tool(id, name)
	a.hasCall = true
	a.blocks.begin(`{"type":"toolCall"`)
	a.blocks = AppendMember(AppendMember(a.blocks, "id", id), "name", name)
	a.blocks = AppendMember(a.blocks, "arguments", Arguments(arguments))
	a.blocks.end()
}

// Model sets the answer's model, if it is not the one of Builder.Model.
func (a *Answer) Model(name rawjson.Value) {
	if name.IsString() {
		a.model = slices.Clone(name)
	}
}

// Count adds tokens.
func (a *Answer) Count(u Usage) { a.usage = a.usage.Plus(u) }

// Used returns the tokens counted so far.
func (a *Answer) Used() Usage { return a.usage }

// Stop sets the reason why the answer ended, in a session's words. By default it is that there are
// calls, or that all is said.
func (a *Answer) Stop(reason string) { a.stop = reason }

// Error ends the answer with an error.
func (a *Answer) Error(message rawjson.Value) {
	a.stop, a.failure = "error", textOf(message)
}

// follow adds an entry behind the answer.
func (a *Answer) follow(e *Entry) {
	b, end := a.builder, a.End()
	h := follower{*e, e.Parent == end}
	h.Time, h.Body = slices.Clone(e.Time), slices.Clone(e.Body)
	a.after = append(a.after, h)
	if a.size += len(h.Body); a.size > maxWaiting {
		b.Close()
	}
}

// addResult adds a result from the answer's own record.
func (a *Answer) addResult(e *Entry) {
	b, end := a.builder, a.End()
	e.Parent, e.Time, e.Body = end, slices.Clone(e.Time), slices.Clone(e.Body)
	a.results = append(a.results, *e)
	if b.at == end {
		b.at = e.ID
	}
	if b.last == end {
		b.last = e.ID
	}
}

// appendTo appends the answer and the entries behind it.
func (a *Answer) appendTo(out []byte) []byte {
	b := a.builder
	content := a.blocks
	if b.Facts {
		content = nil
	}
	body := b.provider.AppendAnswer(b.body[:0], content, a.model)
	if a.usage != (Usage{}) {
		body = a.usage.AppendTo(body)
	}
	body = rawjson.AppendQuoted(append(body, `,"stopReason":`...), a.stopReason())
	body = AppendMember(body, "errorMessage", a.failure)
	a.Body = append(AppendMillis(body, a.Time), '}')
	out = a.AppendTo(out)
	b.reuse(a.Body)
	a.Body = nil
	for i := range a.results {
		out = a.results[i].AppendTo(out)
	}
	for i := range a.after {
		h := a.after[i].Entry
		if a.after[i].onEnd {
			h.Parent = a.End()
		}
		out = h.AppendTo(out)
	}
	return out
}

func (a *Answer) stopReason() string {
	switch {
	case a.stop != "":
		return a.stop
	case a.hasCall:
		return "toolUse"
	}
	return "stop"
}

// Plus returns the sum of two usages.
func (u Usage) Plus(v Usage) Usage {
	u.Input += v.Input
	u.Output += v.Output
	u.CacheRead += v.CacheRead
	u.CacheWrite += v.CacheWrite
	u.Total += v.Total
	u.CacheWrite1h += v.CacheWrite1h
	u.Premium += v.Premium
	u.Fast, u.Ended = u.Fast || v.Fast, max(u.Ended, v.Ended)
	return u
}

// Arguments returns the arguments of a call as an object: a text that has one becomes it, another
// text its member input. Other values become an empty object.
func Arguments(v rawjson.Value) rawjson.Value {
	if v.IsObject() {
		return v
	}
	text, ok := v.Bytes()
	if !ok {
		return rawjson.Value("{}")
	}
	if object := objectIn(text); object != nil {
		return oneLine(object)
	}
	return append(append([]byte(`{"input":`), v...), '}')
}

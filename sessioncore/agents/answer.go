package agents

import (
	"slices"
	"strconv"
	"time"

	"sessionfs/sessioncore/internal/rawjson"
)

// Answer is an answer of the model that may still change, with the entries that follow it. It is
// valid while Builder.Open returns it.
type Answer struct {
	Entry
	key      string
	from     Origin // its record
	builder  *Builder
	blocks   Blocks
	hasCall  bool
	model    []byte
	usage    Usage
	isSet    bool   // the usage counts even if it is 0
	calls    []byte // JSON objects of calls of other models, with commas between them
	cost     []byte // a member
	stop     string
	failure  []byte
	response []byte
	status   []byte
	ended    []byte  // the time of its last record, or empty
	results  []Entry // of its calls, from its own record
	ownSize  int     // bytes of results
	after    []follower
	texts    []byte // times and bodies of after
}

// follower is an entry behind an answer. onEnd: it hangs on the answer's last result, and moves
// with that. time and body are the ends of its texts.
type follower struct {
	Entry
	onEnd      bool
	time, body int
}

// Answer returns the open answer with that key, or begins one; then everything before is final.
func (b *Builder) Answer(key string) *Answer {
	from := b.origin()
	a := b.open
	isOpen := a != nil && a.key == key
	switch {
	case !isOpen:
		a = b.beginAnswer(key, from.time)
	case a.from.id == from.id:
		from.part = max(a.from.part, from.part)
	}
	a.from = Origin{id: from.id, part: from.part, line: from.line}
	n := len(a.Lines)
	if n == 0 || a.Lines[n-1] != from.line {
		a.Lines = append(a.Lines, from.line)
	}
	return a
}

// beginAnswer opens a new answer in the memory of one that is written, and closes the open one before.
func (b *Builder) beginAnswer(key string, at rawjson.Value) *Answer {
	b.Close()
	b.settings()
	b.writeHeader()
	a := b.spare
	b.spare = nil
	if a == nil {
		a = &Answer{}
	}
	*a = Answer{
		Entry:    Entry{Time: a.Time[:0], Lines: a.Lines[:0]},
		builder:  b,
		model:    append(a.model[:0], b.model.value...),
		blocks:   reuse(a.blocks),
		calls:    a.calls[:0],
		cost:     a.cost[:0],
		response: a.response[:0],
		status:   a.status[:0],
		ended:    a.ended[:0],
		results:  a.results[:0],
		after:    a.after[:0],
		texts:    reuse(a.texts),
	}
	a.Type = "message"
	a.ID = b.nextID()
	a.Parent = b.at
	a.Path = b.Path
	a.key = key
	a.Time = append(a.Time, at...)
	b.at = a.ID
	b.last = a.ID
	b.open = a
	return a
}

// Open returns the answer begun last, or nil if it is final.
func (b *Builder) Open() *Answer { return b.open }

// Close makes the open answer final.
func (b *Builder) Close() {
	if b.open != nil {
		b.out = b.open.appendTo(b.out)
		if !b.pending { // then the answer remains open
			b.spare = b.open
			b.spare.forget()
		}
		b.open = nil
	}
}

// forget drops the texts of an answer that are too large to be kept as memory for the next one.
func (a *Answer) forget() {
	a.blocks = reuse(a.blocks)
	a.texts = reuse(a.texts)
	a.model = reuse(a.model)
	a.response = reuse(a.response)
	a.failure = nil
	clear(a.results)
	clear(a.after)
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
		b.numbers.release(a.from.id, a.results[i].ID)
	}
	if b.at == end {
		b.at = a.ID
	}
	if b.last == end {
		b.last = a.ID
	}
	a.blocks = nil
	a.results = nil
	a.hasCall = false
	a.model = append(a.model[:0], b.model.value...)
	a.usage = Usage{}
	a.stop = ""
	a.failure = nil
	return true
}

// End returns the parent of the entry after the answer: the answer's last own result, else the answer.
func (a *Answer) End() string {
	n := len(a.results)
	if n > 0 {
		return a.results[n-1].ID
	}
	return a.ID
}

// Thinking adds a thought. Its signature may be missing.
func (a *Answer) Thinking(text, signature rawjson.Value) {
	if !text.IsString() {
		text = rawjson.Value(`""`)
	}
	if !a.builder.Facts {
		a.blocks.begin(`{"type":"thinking"`)
		a.blocks = AppendMember(a.blocks, "thinking", text)
		a.blocks = AppendText(a.blocks, "thinkingSignature", signature)
		a.blocks.end()
	}
}

// Text adds a text unless it is empty.
func (a *Answer) Text(text rawjson.Value) {
	if !text.Is("") && !a.builder.Facts {
		a.blocks.Text(text)
	}
}

// Part adds a part in Google's form that is neither a call nor a thought.
func (a *Answer) Part(part rawjson.Value) {
	if !a.builder.Facts {
		a.blocks.Part(part)
	}
}

// ImageURL adds the image in a data URL, if it is one.
func (a *Answer) ImageURL(url rawjson.Value) {
	if !a.builder.Facts {
		a.blocks.ImageURL(url)
	}
}

// Other adds a block of the agent's.
func (a *Answer) Other(block rawjson.Value) {
	if !a.builder.Facts {
		a.blocks.Other(block)
	}
}

// Add adds blocks.
func (a *Answer) Add(blocks Blocks) {
	if len(blocks) > 0 && !a.builder.Facts {
		a.blocks.begin("")
		a.blocks = append(a.blocks, blocks...)
	}
}

// Size returns the bytes of the content and of the results from the answer's own records.
func (a *Answer) Size() int { return len(a.blocks) + a.ownSize }

// Call adds a call of a tool. A call without an id gets one that no result can have.
func (a *Answer) Call(id, name, arguments rawjson.Value) {
	if !id.IsString() {
		id = Quoted(a.ID + "/" + strconv.Itoa(len(a.blocks)))
	}
	if !name.IsString() {
		name = rawjson.Value(`"unknown"`)
	}
	name = nameOf(name)
	a.builder.Tool(id, name)
	a.hasCall = true
	if a.builder.Facts {
		return
	}
	a.blocks.begin(`{"type":"toolCall"`)
	a.blocks = AppendMember(a.blocks, "id", id)
	a.blocks = AppendMember(a.blocks, "name", name)
	a.blocks = AppendMember(a.blocks, "arguments", Arguments(arguments))
	a.blocks.end()
}

// Model sets the answer's model, if it is not the one of Builder.Model.
func (a *Answer) Model(name rawjson.Value) {
	if name.IsString() {
		a.model = append(a.model[:0], nameOf(name)...)
	}
}

// Count adds tokens.
func (a *Answer) Count(u Usage) { a.usage = a.usage.Plus(u) }

// CountHere is Count for tokens that the present record tells. They were billed on its day.
func (a *Answer) CountHere(u Usage) {
	u.Ended = laterDay(a.Time, a.builder.from.time)
	a.Count(u)
}

// Set sets the tokens, and JSON objects of calls of other models with commas between them. Unlike
// with Count, the answer has a usage even if it is 0.
func (a *Answer) Set(u Usage, calls []byte) {
	a.usage = u
	a.calls = append(a.calls[:0], calls...)
	a.isSet = true
}

// Uncount removes the tokens of a copy.
func (a *Answer) Uncount() {
	a.usage = Usage{}
	a.calls = a.calls[:0]
	a.isSet = false
}

// Cost sets the session's cost so far, a member of the usage.
func (a *Answer) Cost(member []byte) { a.cost = append(a.cost[:0], member...) }

// Response sets the provider's id of the answer, the status of an error, and the time of the last
// record. Each may be missing.
func (a *Answer) Response(id, status, ended rawjson.Value) {
	a.response = append(a.response[:0], id...)
	a.status = append(a.status[:0], status...)
	a.ended = append(a.ended[:0], ended...)
}

// Stop sets the reason why the answer ended, in a session's words, and that it was no error. By
// default it is that there are calls, or that all is said.
func (a *Answer) Stop(reason string) {
	a.stop = reason
	a.failure = nil
}

// Abort ends the answer as broken off. It keeps the message of an error.
func (a *Answer) Abort() { a.stop = "aborted" }

// Error ends the answer with an error.
func (a *Answer) Error(message rawjson.Value) {
	a.stop = "error"
	a.failure = textOf(message)
}

// follow adds an entry behind the answer.
func (a *Answer) follow(e *Entry) {
	f := follower{Entry: *e, onEnd: e.Parent == a.End()}
	f.Time = nil // it and the body are in texts, and would keep whole records
	f.Body = nil
	a.texts = append(a.texts, e.Time...)
	f.time = len(a.texts)
	a.texts = append(a.texts, e.Body...)
	f.body = len(a.texts)
	a.after = append(a.after, f)
	if len(a.texts) > maxWaiting {
		a.builder.Close()
	}
}

// addResult adds a result from the answer's own record.
func (a *Answer) addResult(e *Entry) {
	b := a.builder
	end := a.End()
	e.Parent = end
	e.Path = b.Path
	e.Time = slices.Clone(e.Time)
	e.Body = slices.Clone(e.Body)
	a.results = append(a.results, *e)
	a.ownSize += len(e.Body)
	if b.at == end {
		b.at = e.ID
	}
	if b.last == end {
		b.last = e.ID
	}
}

// appendTo appends the answer and the entries behind it, or adds its charge.
func (a *Answer) appendTo(out []byte) []byte {
	b := a.builder
	if b.Bills() {
		a.charge()
		return out
	}
	a.Body = a.appendMessage(b.body[:0])
	out = a.AppendTo(out)
	b.body = reuse(a.Body)
	a.Body = nil
	for i := range a.results {
		out = a.results[i].AppendTo(out)
	}
	at := 0
	for i := range a.after {
		f := &a.after[i]
		h := f.Entry
		h.Time = a.texts[at:f.time]
		h.Body = a.texts[f.time:f.body]
		at = f.body
		if f.onEnd {
			h.Parent = a.End()
		}
		out = h.AppendTo(out)
	}
	return out
}

// appendMessage appends the member message of the answer.
func (a *Answer) appendMessage(dst []byte) []byte {
	b := a.builder
	content := a.blocks
	if b.Facts {
		content = nil
	}
	body := append(dst, `"message":{"role":"assistant","content":[`...)
	body = append(body, content...)
	body = append(body, ']')
	body = append(body, `,"api":`...)
	body = rawjson.AppendQuoted(body, b.provider.API)
	body = append(body, `,"provider":`...)
	body = rawjson.AppendQuoted(body, b.provider.Name)
	body = append(body, `,"model":`...)
	if len(a.model) > 0 {
		body = append(body, a.model...)
	} else {
		body = rawjson.AppendQuoted(body, b.provider.Model)
	}
	body = a.appendUsage(body)
	stop := a.stop
	if stop == "" {
		stop = "stop"
	}
	if a.stop == "" && a.hasCall {
		stop = "toolUse"
	}
	body = append(body, `,"stopReason":`...)
	body = rawjson.AppendQuoted(body, stop)
	body = AppendMember(body, "responseId", a.response)
	body = AppendMember(body, "errorMessage", a.failure)
	body = AppendMember(body, "errorStatus", a.status)
	ended := a.Time
	if len(a.ended) > 0 {
		ended = a.ended
	}
	body = appendMillis(body, ended)
	return append(body, '}')
}

// isCounted reports whether the answer has a usage.
func (a *Answer) isCounted() bool { return a.isSet || a.usage != (Usage{}) }

// appendUsage appends the member usage, if there is one.
func (a *Answer) appendUsage(dst []byte) []byte {
	isCounted := a.isCounted()
	if a.builder.Words || !isCounted && len(a.cost) == 0 {
		return dst
	}
	dst = append(dst, `,"usage":{`...)
	dst = append(dst, a.cost...)
	if isCounted {
		if len(a.cost) > 0 {
			dst = append(dst, ',')
		}
		u := a.usage
		u.Ended = max(u.Ended, laterDay(a.Time, a.ended))
		dst = u.AppendMembers(dst)
	}
	if len(a.calls) > 0 {
		dst = append(dst, `,"modelCalls":[`...)
		dst = append(dst, a.calls...)
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

// laterDay returns the time in ms of an answer's last record if its day, in UTC or in local time,
// is a later one, else 0.
func laterDay(first, last rawjson.Value) int64 {
	start, _, timed := rawjson.ReadTimestamp(first)
	ended, _, ok := rawjson.ReadTimestamp(last)
	if !timed || !ok || start < 0 || ended <= start {
		return 0
	}
	if isLaterDay(start, ended, time.UTC) || isLaterDay(start, ended, time.Local) {
		return ended
	}
	return 0
}

// isLaterDay reports whether a time is on a later day of a zone than an earlier time. Both are in ms since the epoch.
func isLaterDay(start, ended int64, zone *time.Location) bool {
	from := time.UnixMilli(start).In(zone)
	_, offset := from.Zone()
	localStart := start + int64(offset)*1000
	untilMidnight := millisOfDay - localStart%millisOfDay
	isSurelySameDay := ended-start < untilMidnight-millisOfHours // even if the clock is put forward meanwhile
	if isSurelySameDay {
		return false
	}
	year, month, day := from.Date()
	tomorrow := time.Date(year, month, day+1, 0, 0, 0, 0, zone)
	end := time.UnixMilli(ended)
	return !end.Before(tomorrow)
}

const (
	millisOfDay = 24 * 60 * 60 * 1000
	// millisOfHours is more than a clock is ever put forward within a day.
	millisOfHours = millisOfDay / 8
)

// Plus returns the sum of two usages.
func (u Usage) Plus(v Usage) Usage {
	u.Input += v.Input
	u.Output += v.Output
	u.CacheRead += v.CacheRead
	u.CacheWrite += v.CacheWrite
	u.Total += v.Total
	u.CacheWrite1h += v.CacheWrite1h
	u.Premium += v.Premium
	u.Fast = u.Fast || v.Fast
	u.Ended = max(u.Ended, v.Ended)
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
	object := ObjectIn(text)
	if object != nil {
		return oneLine(object)
	}
	return append(append([]byte(`{"input":`), v...), '}')
}

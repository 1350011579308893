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

// Answer returns the open answer with a key, to add the current record to it. The key is the agent's name for an
// answer of several records, such as the id of a call of the model. If no answer with that key is open, Answer begins
// one; then everything before is final.
func (b *Builder) Answer(key string) *Answer {
	from := b.origin()
	a := b.open
	isOpen := a != nil && a.key == key
	switch {
	case !isOpen:
		a = b.beginAnswer(key, from.time)
	case a.from.id == from.id: // a repeated record: its numbers go on behind the numbers of the answer's entries
		from.part = max(a.from.part, from.part)
	}
	a.from = Origin{id: from.id, part: from.part, line: from.line}
	n := len(a.Lines)
	isNewLine := n == 0 || a.Lines[n-1] != from.line // a record can call Answer several times
	if isNewLine {
		a.Lines = append(a.Lines, from.line)
	}
	return a
}

// beginAnswer closes the open answer, and opens a new one behind the entries so far, in the memory of one that is
// written. begun is the time of its first record, and may be missing.
func (b *Builder) beginAnswer(key string, begun rawjson.Value) *Answer {
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
	a.Time = append(a.Time, begun...)
	b.at = a.ID
	b.last = a.ID
	b.open = a
	return a
}

// Open returns the answer begun last, or nil if it is final.
func (b *Builder) Open() *Answer { return b.open }

// Close makes the open answer final, if there is one.
func (b *Builder) Close() {
	if b.open == nil {
		return
	}
	b.out = b.open.appendTo(b.out)
	if !b.pending { // else Tail opens the answer again
		b.spare = b.open
		b.spare.forget()
	}
	b.open = nil
}

// forget empties an answer, as its memory serves the next one, and drops texts that are too large for that.
func (a *Answer) forget() {
	a.blocks = reuse(a.blocks)
	a.texts = reuse(a.texts)
	a.model = reuse(a.model)
	a.response = reuse(a.response)
	a.failure = nil
	clear(a.results)
	clear(a.after)
}

// Replace empties the open answer if it has that key, for a record that repeats all of it. It removes the answer's own
// results, whose ids are free again, and keeps the other entries behind it. It returns false, and does nothing, if
// no answer with that key is open.
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
	if b.at == end { // that result is gone
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

// Thinking adds a thought. Its text and its signature may be missing.
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

// ImageURL adds the image in a data URL. It ignores other URLs.
func (a *Answer) ImageURL(url rawjson.Value) {
	if !a.builder.Facts {
		a.blocks.ImageURL(url)
	}
}

// Other adds a block of the agent's, a JSON object. It ignores other values.
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

// Size returns about how many bytes the answer holds: of its content, and of the results from its own records.
func (a *Answer) Size() int { return len(a.blocks) + a.ownSize }

// Call adds a call of a tool, and notes the tool's name for the result. A call without an id gets one that no result
// can have, as it has a slash and a number that only this answer has. arguments is any value, see Arguments.
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

// CountHere is Count for tokens that the current record tells, which may be later than the answer's first one. They
// were billed on that record's day.
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

// Stop sets the reason why the answer ended, as a session has it (stopReason), and that it was no error. By default
// it is toolUse for an answer with calls, and stop for others.
func (a *Answer) Stop(reason string) {
	a.stop = reason
	a.failure = nil
}

// Abort ends the answer as broken off. It keeps the message of an error.
func (a *Answer) Abort() { a.stop = "aborted" }

// Error ends the answer with an error. The message may be missing.
func (a *Answer) Error(message rawjson.Value) {
	a.stop = "error"
	a.failure = textOf(message)
}

// follow adds an entry behind the answer, and copies its texts. It closes the answer if too much waits for it.
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

// addResult adds a result from the answer's own record, behind the results before, and copies its texts. It sets the
// parent and the path of e. Entries that hang on the end of the answer move behind the result.
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

// appendTo appends the answer, its results and the entries behind it. For a bill it appends nothing, and gives the
// ledger the answer's charge.
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
	return a.appendFollowers(out)
}

// appendFollowers appends the entries behind the answer.
func (a *Answer) appendFollowers(out []byte) []byte {
	begin := 0 // of the texts of a follower
	for i := range a.after {
		f := &a.after[i]
		e := f.Entry
		e.Time = a.texts[begin:f.time]
		e.Body = a.texts[f.time:f.body]
		begin = f.body
		if f.onEnd { // there may be more results since it came
			e.Parent = a.End()
		}
		out = e.AppendTo(out)
	}
	return out
}

// appendMessage appends the member message of the answer, without the comma before it.
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
	body = append(body, `,"stopReason":`...)
	body = rawjson.AppendQuoted(body, a.stopReason())
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

// stopReason returns the reason why the answer ended, as a session has it.
func (a *Answer) stopReason() string {
	switch {
	case a.stop != "":
		return a.stop
	case a.hasCall:
		return "toolUse"
	}
	return "stop"
}

// isCounted reports whether the answer has a usage.
func (a *Answer) isCounted() bool { return a.isSet || a.usage != (Usage{}) }

// appendUsage appends a comma and the member usage, if the answer has tokens or a cost and the reader wants them.
func (a *Answer) appendUsage(dst []byte) []byte {
	isCounted := a.isCounted()
	hasUsage := isCounted || len(a.cost) > 0
	if a.builder.Words || !hasUsage {
		return dst
	}
	dst = append(dst, `,"usage":{`...)
	dst = append(dst, a.cost...)
	if isCounted {
		if len(a.cost) > 0 {
			dst = append(dst, ',')
		}
		u := a.usage
		ended := laterDay(a.Time, a.ended)
		u.Ended = max(u.Ended, ended)
		dst = u.AppendMembers(dst)
	}
	if len(a.calls) > 0 {
		dst = append(dst, `,"modelCalls":[`...)
		dst = append(dst, a.calls...)
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

// laterDay returns the time of an answer's last record, in ms since the epoch, if it is on a later day than the first
// one, in UTC or in local time. Otherwise it returns 0, as it does for a missing time and for one before 1970.
func laterDay(first, last rawjson.Value) int64 {
	start, _, hasStart := rawjson.ReadTimestamp(first)
	ended, _, hasEnd := rawjson.ReadTimestamp(last)
	if !hasStart || !hasEnd {
		return 0
	}
	if start < 0 || ended <= start {
		return 0
	}
	if isLaterDay(start, ended, time.UTC) || isLaterDay(start, ended, time.Local) {
		return ended
	}
	return 0
}

// isLaterDay reports whether a time is on a later day of a zone than the time start before it. Both are in ms since
// the epoch. Most answers end within minutes, so it first compares numbers, without a calendar.
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

// Plus returns the sum of two usages. It is fast if one of them is, and ends with the later one.
func (u Usage) Plus(more Usage) Usage {
	u.Input += more.Input
	u.Output += more.Output
	u.CacheRead += more.CacheRead
	u.CacheWrite += more.CacheWrite
	u.Total += more.Total
	u.CacheWrite1h += more.CacheWrite1h
	u.Premium += more.Premium
	u.Fast = u.Fast || more.Fast
	u.Ended = max(u.Ended, more.Ended)
	return u
}

// Arguments returns the arguments of a call as an object. A text with a JSON object in it becomes that object, another
// text the member input of a new one. Other values become an empty object.
func Arguments(v rawjson.Value) rawjson.Value {
	if v.IsObject() {
		return v
	}
	text, isText := v.Bytes()
	if !isText {
		return rawjson.Value("{}")
	}
	object := ObjectIn(text)
	if object != nil {
		return oneLine(object)
	}
	wrapped := append(rawjson.Value(`{"input":`), v...)
	return append(wrapped, '}')
}

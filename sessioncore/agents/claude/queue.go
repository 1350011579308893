package claude

import (
	"slices"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// This file handles prompts that a person typed while the client worked (docs/format-claude.md). Some versions write them only into queue-operation records, others also into attachments.

// maxQueued bounds the prompts in the client's queue, and those for the next answer.
const maxQueued = 1000

// queued is a prompt that a person typed while the client worked.
type queued struct {
	content  rawjson.Value // a text or blocks; missing if no record has it
	text     string
	time     rawjson.Value
	lines    []int64 // of its records; the first one has the words
	by       string
	hasWords bool // another record has the words
	later    bool // a later record after a dequeue has the words
}

// queue holds such prompts.
type queue struct {
	waiting []queued // in the client's queue
	sent    []queued // with the last results; their entries stand before the next answer
	// guessed has the lines of prompts that a record without words seemed to mean, by text.
	guessed map[string]int64
	// attached counts prompts in attachments without a record that they waited, by text.
	attached map[string]int
	popped   string // the text of the prompt that should come next as a message of its own
}

// queueOperation handles a record of type queue-operation.
func (c *converter) queueOperation(r *record) {
	q := &c.queue
	content := r.Member("content")
	op := r.Member("operation")
	switch {
	case op.Is("enqueue") && len(q.waiting) < maxQueued:
		p := newQueued(r, content)
		p.later = c.learned.queued[r.line]
		q.waiting = append(q.waiting, p)
	case op.Is("dequeue"):
		q.popped = q.take(content, func(p *queued) bool { return p.later }).text
	case op.Is("popAll") && content.IsString():
		q.take(content, nil)
	case op.Is("popAll"):
		q.waiting = nil
	case op.Is("remove"):
		q.remove(r, content)
	}
}

func newQueued(r *record, content rawjson.Value) queued {
	return queued{
		content: slices.Clone(content), text: strings.TrimSpace(agents.ChatText(content)), time: slices.Clone(r.time()),
		lines: []int64{r.line}, by: sayerOf(content, false),
	}
}

// remove handles a prompt that left the client's queue. Newer versions say why it was not sent.
func (q *queue) remove(r *record, content rawjson.Value) {
	p := q.take(content, func(p *queued) bool { return p.hasWords || !p.later && !strings.HasPrefix(p.text, "/") })
	if len(p.lines) == 0 { // its other record is not in the file
		p = newQueued(r, content)
		if q.attached[p.text] > 0 {
			q.attached[p.text]--
			return
		}
	} else {
		p.lines = append(p.lines, r.line)
		p.time = slices.Clone(r.time())
	}
	reason := r.Member("reason")
	isSent := reason.Missing() || reason.Is("absorbed_mid_turn")
	if p.text == "" || p.hasWords || !isSent || len(q.sent) == maxQueued {
		return
	}
	if !content.IsString() {
		q.guessed[p.text] = p.lines[0]
	}
	q.sent = append(q.sent, p)
}

// take removes a prompt from the queue: by its text or, without one, the first that prefer picks,
// else the first. The result has no lines if there is none.
func (q *queue) take(content rawjson.Value, prefer func(*queued) bool) (p queued) {
	at := -1
	if content.IsString() {
		text := strings.TrimSpace(agents.ChatText(content))
		at = slices.IndexFunc(q.waiting, func(p queued) bool { return p.text == text })
	} else if len(q.waiting) > 0 {
		at = max(0, slices.IndexFunc(q.waiting, func(p queued) bool { return prefer(&p) }))
	}
	if at >= 0 {
		p = q.waiting[at]
		q.waiting = slices.Delete(q.waiting, at, at+1)
	}
	return p
}

func indexText(prompts []queued, text string) int {
	return slices.IndexFunc(prompts, func(p queued) bool { return p.text == text && !p.hasWords })
}

// dequeue matches a record's words with a prompt of the queue, so that they become one entry. A
// message of the person need not be in the queue.
func (c *converter) dequeue(content rawjson.Value, isMessage bool) {
	q := &c.queue
	if isMessage && q.popped == "" && len(q.sent)+len(q.waiting)+len(q.guessed) == 0 {
		return
	}
	text := strings.TrimSpace(agents.ChatText(content))
	line, isGuess := q.guessed[text]
	sent := indexText(q.sent, text)
	waiting := indexText(q.waiting, text)
	switch {
	case text == "":
	case sent >= 0:
		q.sent = slices.Delete(q.sent, sent, sent+1)
	case isMessage && q.popped == text:
		q.popped = ""
	case waiting >= 0:
		q.waiting[waiting].hasWords = true
	case isGuess && (!isMessage || q.popped != ""):
		learn(c, c.learned.queued, line, true)
	case !isMessage && len(q.attached) < maxQueued:
		q.attached[text]++
	}
}

// attach handles a prompt in an attachment without a uuid, on which no record hangs.
func (c *converter) attach(r *record) {
	content, isMeta := queuedCommand(r)
	c.dequeue(content, false)
	if p := newQueued(r, content); len(c.queue.sent) < maxQueued {
		p.by = sayerOf(content, isMeta)
		p.hasWords = true
		c.queue.sent = append(c.queue.sent, p)
	}
}

// queuedCommand returns the prompt of an attachment, and whether it is the client's.
func queuedCommand(r *record) (content rawjson.Value, isMeta bool) {
	attachment := agents.Read(r.Member("attachment"))
	return attachment.Member("prompt"), isClientsCommand(attachment)
}

// isClientsCommand reports whether the client itself queued a command.
func isClientsCommand(command agents.Object) bool {
	mode := command.Member("commandMode")
	return !mode.Missing() && !mode.Is("prompt") || command.Member("isMeta").IsTrue()
}

// isQueuedCommand reports whether a record is an attachment with a prompt.
func isQueuedCommand(r *record) bool {
	return r.typ.Is("attachment") && r.Member("attachment").Member("type").Is("queued_command")
}

// send makes entries of the prompts sent with the last results. The results' children hang on them.
func (c *converter) send() {
	sent := c.queue.sent
	before := c.end
	c.queue.sent = nil
	for i := range sent {
		p := &sent[i]
		parts, _ := c.split(p.content)
		r := &record{line: p.lines[len(p.lines)-1], lines: p.lines}
		r.Object = agents.Object{{Key: rawjson.Value(`"timestamp"`), Value: p.time}}
		c.say(r, parts, 0, p.by, c.end)
	}
	before.id = c.end.id
}

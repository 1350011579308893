package claude

import (
	"slices"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// This file handles prompts that a person typed while the client worked (docs/format-claude.md). Several records
// may have the words of one prompt, and the prompt becomes one entry:
//
//	until 2.1.72    enqueue with words, remove without: which prompt was sent is a guess
//	from 2.1.247    enqueue with words, remove with words and a reason
//	2.1.330         the same, and an attachment with the words, before remove or behind it
//	a message       enqueue with words, dequeue, then the message
//
// The entry is the attachment's or the message's where there is one. A message that shows a guess to be wrong has
// the file read again.

// maxQueued bounds the prompts in the client's queue, and those for the next answer.
const maxQueued = 1000

// queuedPrompt is a prompt that a person typed while the client worked.
type queuedPrompt struct {
	content  rawjson.Value // a text or blocks; missing if no record has it
	text     string        // of content, to compare; "" without content
	time     rawjson.Value // of its last record
	lines    []int64       // of its records; the first one has the words
	by       string        // the speaker
	hasWords bool          // another record has the words, which makes the entry
	later    bool          // a message behind a later dequeue has the words, as an earlier reading found
}

// queue holds such prompts.
type queue struct {
	waiting []queuedPrompt // in the client's queue, in its order
	sent    []queuedPrompt // with the last results; their entries stand before the next answer
	// guessed has the line of enqueue of each prompt that a remove without words seemed to mean, by text.
	guessed map[string]int64
	// attached counts prompts in attachments that were neither waiting nor sent, by text: their enqueue is not in
	// the file, and their remove may follow.
	attached  map[string]int
	announced string // the text of the prompt that a dequeue announced as the next message, or ""
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
		isLater := func(p *queuedPrompt) bool { return p.later }
		p, _ := q.take(content, isLater)
		q.announced = p.text
	case op.Is("popAll") && content.IsString(): // this prompt alone goes back into the editor
		q.take(content, nil)
	case op.Is("popAll"):
		q.waiting = nil
	case op.Is("remove"):
		q.remove(r, content)
	}
}

// newQueued returns the prompt of a record, with content of its own.
func newQueued(r *record, content rawjson.Value) queuedPrompt {
	return queuedPrompt{
		content: slices.Clone(content),
		text:    promptText(content),
		time:    slices.Clone(r.time()),
		lines:   []int64{r.line},
		by:      sayerOf(content, false),
	}
}

// promptText returns the trimmed text of content: records of one prompt have the same.
func promptText(content rawjson.Value) string {
	text := agents.ChatText(content)
	return strings.TrimSpace(text)
}

// remove handles a prompt that left the client's queue. Newer versions say why it was not sent.
func (q *queue) remove(r *record, content rawjson.Value) {
	p, isKnown := q.take(content, isLikelySent)
	if isKnown {
		p.lines = append(p.lines, r.line)
		p.time = slices.Clone(r.time())
	} else { // its enqueue is not in the file
		p = newQueued(r, content)
		if q.attached[p.text] > 0 { // an attachment made the entry
			q.attached[p.text]--
			return
		}
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

// isLikelySent reports whether a prompt is likely the one that a remove without words means: the client sends
// no slash commands with results.
func isLikelySent(p *queuedPrompt) bool {
	isCommand := strings.HasPrefix(p.text, "/")
	return p.hasWords || !p.later && !isCommand
}

// take removes a waiting prompt: the one with the text of content or, if that is no text, the first likely one,
// else the first. ok is false if there is none.
func (q *queue) take(content rawjson.Value, isLikely func(*queuedPrompt) bool) (p queuedPrompt, ok bool) {
	at := -1
	if content.IsString() {
		text := promptText(content)
		at = slices.IndexFunc(q.waiting, func(p queuedPrompt) bool { return p.text == text })
	} else if len(q.waiting) > 0 {
		likely := slices.IndexFunc(q.waiting, func(p queuedPrompt) bool { return isLikely(&p) })
		at = max(0, likely)
	}
	if at < 0 {
		return queuedPrompt{}, false
	}
	p = q.waiting[at]
	q.waiting = slices.Delete(q.waiting, at, at+1)
	return p, true
}

// indexText returns the index of the first prompt of a text that no other record has, or -1.
func indexText(prompts []queuedPrompt, text string) int {
	return slices.IndexFunc(prompts, func(p queuedPrompt) bool {
		return p.text == text && !p.hasWords
	})
}

// unsend removes a sent prompt of a text, as another record makes its entry. It returns false if there is none.
func (q *queue) unsend(text string) bool {
	at := indexText(q.sent, text)
	if at < 0 {
		return false
	}
	q.sent = slices.Delete(q.sent, at, at+1)
	return true
}

// keepWords notes that another record makes the entry of a waiting prompt of a text. It returns false if there
// is no such prompt.
func (q *queue) keepWords(text string) bool {
	at := indexText(q.waiting, text)
	if at < 0 {
		return false
	}
	q.waiting[at].hasWords = true
	return true
}

// matchMessage matches a message of the person with its prompt in the queue, if it has one, so that both become
// one entry.
func (c *converter) matchMessage(content rawjson.Value) {
	q := &c.queue
	isEmpty := len(q.sent)+len(q.waiting)+len(q.guessed) == 0
	if isEmpty && q.announced == "" {
		return // most messages: their text is not needed
	}
	text := promptText(content)
	switch {
	case text == "" || q.unsend(text):
	case q.announced == text:
		q.announced = ""
	case q.keepWords(text):
	case q.announced != "": // another prompt should come now: if this one was a guess, that was wrong
		c.learnQueued(text)
	}
}

// matchAttachment matches the prompt of an attachment, which was in the queue, with that, so that both become one
// entry.
func (c *converter) matchAttachment(content rawjson.Value) {
	q := &c.queue
	text := promptText(content)
	switch {
	case text == "" || q.unsend(text) || q.keepWords(text) || c.learnQueued(text):
	case len(q.attached) < maxQueued:
		q.attached[text]++
	}
}

// learnQueued has the file read again if a prompt of a text was guessed to be sent: the text is known now to come
// later. It returns false if there was no such guess.
func (c *converter) learnQueued(text string) bool {
	line, isGuess := c.queue.guessed[text]
	if isGuess {
		learn(c, c.learned.queued, line, true)
	}
	return isGuess
}

// attach handles a prompt in an attachment without a uuid. No record can hang on it.
func (c *converter) attach(r *record) {
	content, isMeta := queuedCommand(r)
	c.matchAttachment(content)
	if len(c.queue.sent) == maxQueued {
		return
	}
	p := newQueued(r, content)
	p.by = sayerOf(content, isMeta)
	p.hasWords = true
	c.queue.sent = append(c.queue.sent, p)
}

// queuedCommand returns the prompt of an attachment, which is missing if it has none, and whether it is the
// client's.
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

// send makes entries of the prompts sent with the last results, and empties their list. Records that hang on the
// results hang on the last of these entries then.
func (c *converter) send() {
	sent := c.queue.sent
	c.queue.sent = nil
	resultPlace := c.end
	for i := range sent {
		p := &sent[i]
		parts := c.split(p.content)
		time := rawjson.Member{Key: rawjson.Value(`"timestamp"`), Value: p.time}
		r := &record{
			Object: agents.Object{time},
			line:   p.lines[len(p.lines)-1],
			lines:  p.lines,
		}
		c.addParts(r, parts, p.by, c.end)
	}
	resultPlace.id = c.end.id
}

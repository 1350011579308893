package forks

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// conversation is the index of a context: where each message is, and which calls and results belong
// together. The messages themselves stay in the context, which may be larger than the memory.
type conversation struct {
	context  *document.Document
	messages []messageRange
	calls    []handedCall    // in order
	results  map[int]int     // the call of a message that is its result
	byID     map[string]int  // the last call without a result yet, by its id in the context
	ids      map[string]bool // of calls, as they are handed over
	images   int             // the number of images that a text stands for

	// snapshot has the entries of the messages, nil where nobody asks for them.
	snapshot *sessioncore.Snapshot
	entries  []sessioncore.Entry
}

// messageRange is the place of a message in the context.
type messageRange struct {
	off, size int64
	calls     int // the number of calls before it
}

// handedCall is a call of a tool.
type handedCall struct {
	id     string // as it is handed over
	result int    // the message with its result, noResult without one
}

// noResult stands for the result of a call that has none.
const noResult = -1

// readConversation indexes a context, without the entries of its messages. The error is that of reading it,
// or of ctx.
func readConversation(ctx context.Context, of *document.Document) (*conversation, error) {
	c := &conversation{
		context: of,
		results: map[int]int{},
		byID:    map[string]int{},
		ids:     map[string]bool{},
	}
	in := json.NewDecoder(io.NewSectionReader(of, 0, of.Size()))
	for range 3 { // the brace, the key of the messages, and the bracket
		_, err := in.Token()
		if err != nil {
			return nil, err
		}
	}
	for in.More() {
		err := ctx.Err()
		if err != nil {
			return nil, err
		}
		var message json.RawMessage
		err = in.Decode(&message)
		if err != nil {
			return nil, fmt.Errorf("message %d of the context: %w", len(c.messages)+1, err)
		}
		c.add(rawjson.Value(message), in.InputOffset())
	}
	return c, nil
}

// add indexes a message that ends at an offset of the context. It keeps nothing of its text but ids.
func (c *conversation) add(message rawjson.Value, end int64) {
	size := int64(len(message))
	at := len(c.messages)
	c.messages = append(c.messages, messageRange{
		off:   end - size,
		size:  size,
		calls: len(c.calls),
	})
	role := message.Member("role")
	switch {
	case role.Is("assistant"):
		for block := range message.Member("content").EachElement {
			if block.Member("type").Is("toolCall") {
				c.addCall(block)
			}
		}
	case role.Is("toolResult"):
		id, _ := message.Member("toolCallId").Text()
		call, isCalled := c.byID[id]
		if isCalled {
			c.calls[call].result = at
			c.results[at] = call
			delete(c.byID, id)
		}
	}
}

// maxName is the length of the longest id and name of a call that services take.
const maxName = 64

// isName reports whether services take a text as the id or the name of a call.
func isName(text string) bool {
	for _, c := range []byte(text) {
		if !isNameByte(c) {
			return false
		}
	}
	return text != "" && len(text) <= maxName
}

// isNameByte reports whether a byte may be in the id or the name of a call.
func isNameByte(c byte) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		return true
	}
	return c == '_' || c == '-'
}

// numbered matches ids that a client may take for copies of another id: Claude Code loses the results of
// call_1_0 where there is a call_1.
var numbered = regexp.MustCompile(`_[0-9]+$`)

// addCall indexes a call. Its id becomes another one where services or clients would not take it, or another
// call has it.
func (c *conversation) addCall(block rawjson.Value) {
	id, _ := block.Member("id").Text()
	c.byID[id] = len(c.calls)
	isUsable := isName(id) && !numbered.MatchString(id)
	if !isUsable || c.ids[id] {
		id = c.newID()
	}
	c.ids[id] = true
	c.calls = append(c.calls, handedCall{id: id, result: noResult})
}

// newID returns an id that no call has yet.
func (c *conversation) newID() string {
	n := len(c.calls) + 1
	id := fmt.Sprintf("call%d", n)
	for c.ids[id] {
		n++
		id = fmt.Sprintf("call%d", n)
	}
	return id
}

// toolName returns the name of a tool in characters that services take.
func toolName(name string) string {
	var out []byte
	for _, r := range name {
		if r < 0x80 && isNameByte(byte(r)) {
			out = append(out, byte(r))
		} else {
			out = append(out, '_')
		}
	}
	out = out[:min(len(out), maxName)]
	if len(out) == 0 {
		return "unknown"
	}
	return string(out)
}

// read returns a message of the context, by its number. The error wraps storage.ErrStale if the text is
// another one than was indexed.
func (c *conversation) read(at int) (rawjson.Value, error) {
	text := make([]byte, c.messages[at].size)
	err := storage.ReadFull(c.context, text, c.messages[at].off)
	if err == nil && !rawjson.IsValidObject(text) {
		err = fmt.Errorf("%w: message %d of the context", storage.ErrStale, at+1)
	}
	return text, err
}

// entryOf returns the entry of a message, or nil for a part of a compaction, and for an entry without a
// time, which no copy is known by.
func (c *conversation) entryOf(message int) *agents.HandedEntry {
	if c.snapshot == nil {
		return nil
	}
	entry := c.entries[message]
	id, hasID := c.snapshot.ID(entry)
	at, isTimed := c.snapshot.OwnTime(entry)
	if !hasID || !isTimed || c.snapshot.Kind(entry) == sessioncore.TypeCompaction {
		return nil
	}
	return &agents.HandedEntry{ID: id, Time: at.UTC().Format(rawjson.TimestampLayout)}
}

// turnOf returns the turn of a message, or nil for a message that is sent to no other agent's model. A
// result stays a turn also if it is empty, as its call needs one.
func (c *conversation) turnOf(at int) (*agents.Turn, error) {
	message, err := c.read(at)
	if err != nil {
		return nil, err
	}
	t := &agents.Turn{Time: timeOf(message), Entry: c.entryOf(at)}
	r := blockReader{conversation: c, call: c.messages[at].calls}
	role, _ := message.Member("role").Text()
	switch role {
	case "user":
		t.By = agents.ByUser
		isMade := message.Member("synthetic").IsTrue() || message.Member("attribution").Is("agent")
		if isMade {
			t.By = agents.ByProgram
		}
		r.addContent(message.Member("content"))
	case "assistant":
		t.By = agents.ByModel
		t.Model, _ = message.Member("model").Text()
		r.isAnswer = true
		r.addContent(message.Member("content"))
	case "toolResult":
		call, isCalled := c.results[at]
		t.By = agents.ByProgram
		if isCalled {
			t.By = agents.ByTool
			t.Call = c.calls[call].id
			t.IsError = message.Member("isError").IsTrue()
		} else {
			tool, _ := message.Member("toolName").Text()
			r.addText("Result of the tool " + tool + ":")
		}
		r.addContent(message.Member("content"))
	default:
		t.By = r.addOther(role, message)
	}
	t.Blocks = r.blocks
	if len(t.Blocks) == 0 && t.By != agents.ByTool {
		return nil, nil
	}
	return t, nil
}

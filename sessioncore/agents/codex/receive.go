package codex

import (
	"io"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// This file writes a rollout with a conversation that another agent had (docs/format.md, Handovers to
// another agent), in the form without ordinals.

// Receive implements agents.Receiver. With an error, out has a part of the rollout.
func (h *Home) Receive(of *agents.Handover, out io.Writer) (agents.ForkPlace, error) {
	place := newPlace(of.ID, of.Time)
	w := rolloutWriter{handover: of, out: out}
	err := w.begin()
	if err != nil {
		return place, err
	}
	return place, of.EachTurn(w.turn)
}

// rolloutWriter writes the records of a handover.
type rolloutWriter struct {
	handover *agents.Handover
	out      io.Writer
	entry    *agents.HandedEntry // of a turn that has no item yet
}

// rolloutRecord is a record of a handover.
type rolloutRecord struct {
	Timestamp string              `json:"timestamp"`
	Type      string              `json:"type"`
	Payload   any                 `json:"payload"`
	Entry     *agents.HandedEntry `json:"handedOver,omitempty"`
}

// metaRecord is the first record.
type metaRecord struct {
	ID         string                `json:"id"`
	Timestamp  string                `json:"timestamp"`
	CWD        string                `json:"cwd"`
	Originator string                `json:"originator"`
	CLIVersion string                `json:"cli_version"`
	Source     string                `json:"source"`
	Origin     agents.HandoverOrigin `json:"handedOverFrom"`
}

// messageItem is an item of words.
type messageItem struct {
	Type    string     `json:"type"`
	Role    string     `json:"role"`
	Content []itemPart `json:"content"`
}

// itemPart is a part of a message, or of the output of a tool.
type itemPart struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	ImageURL string `json:"image_url,omitempty"`
}

// callItem is an item with a call of a tool.
type callItem struct {
	Type      string `json:"type"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	CallID    string `json:"call_id"`
}

// outputItem is an item with the result of a call: a text, or parts.
type outputItem struct {
	Type   string `json:"type"`
	CallID string `json:"call_id"`
	Output any    `json:"output"`
}

// shownEvent is an event, which the client's terminal shows.
type shownEvent struct {
	Type     string `json:"type"`
	Message  string `json:"message,omitempty"`
	ThreadID string `json:"thread_id,omitempty"`
	Title    string `json:"thread_name,omitempty"`
}

// The types of records.
const (
	itemRecord  = "response_item"
	eventRecord = "event_msg"
)

// begin writes the first record, as of a session in a terminal, since the client's picker shows no
// others, and the title.
func (w *rolloutWriter) begin() error {
	of := w.handover
	now := of.Time.UTC().Format(rawjson.TimestampLayout)
	meta := metaRecord{
		ID:         of.ID,
		Timestamp:  now,
		CWD:        of.CWD,
		Originator: "codex-tui",
		CLIVersion: agents.NoVersion,
		Source:     "cli",
		Origin:     of.Origin,
	}
	err := w.write(rolloutRecord{Timestamp: now, Type: "session_meta", Payload: meta})
	if err != nil || of.Title == "" {
		return err
	}
	title := shownEvent{Type: "thread_name_updated", ThreadID: of.ID, Title: of.Title}
	return w.write(rolloutRecord{Timestamp: now, Type: eventRecord, Payload: title})
}

// compactedRecord is a summary in the place of the conversation before it.
type compactedRecord struct {
	Message string `json:"message"`
}

// turn writes the records of a turn. A person's message is an item for the model and an event for the terminal.
func (w *rolloutWriter) turn(t *agents.Turn) error {
	w.entry = t.Entry
	switch t.By {
	case agents.BySummary:
		return w.add(t, "compacted", compactedRecord{Message: t.Texts("\n\n")})
	case agents.ByTool:
		return w.add(t, itemRecord, outputItem{
			Type:   "function_call_output",
			CallID: t.Call,
			Output: outputOf(t.Blocks),
		})
	case agents.ByModel:
		return w.answer(t)
	}
	err := w.message(t, "user", partsOf(t.Blocks, "input_text"))
	if err != nil || t.By == agents.ByProgram {
		return err
	}
	return w.event(t, "user_message", t.Texts(""))
}

// answer writes an item for each text and each call of an answer.
func (w *rolloutWriter) answer(t *agents.Turn) error {
	for i := range t.Blocks {
		err := w.answerBlock(t, &t.Blocks[i])
		if err != nil {
			return err
		}
	}
	return nil
}

// answerBlock writes the records of a call, or of a text.
func (w *rolloutWriter) answerBlock(t *agents.Turn, b *agents.TurnBlock) error {
	if b.Call != "" {
		return w.add(t, itemRecord, callItem{
			Type:      "function_call",
			Name:      b.Tool,
			Arguments: string(b.Arguments),
			CallID:    b.Call,
		})
	}
	text := itemPart{Type: "output_text", Text: b.Text}
	err := w.message(t, "assistant", []itemPart{text})
	if err != nil {
		return err
	}
	return w.event(t, "agent_message", b.Text)
}

// partsOf returns blocks, of texts and images, as parts of a message of the person, or of the output of a tool.
// textType is the type of a part with a text.
func partsOf(blocks []agents.TurnBlock, textType string) []itemPart {
	var parts []itemPart
	for _, b := range blocks {
		if b.Data != "" {
			url := "data:" + b.MediaType + ";base64," + b.Data
			parts = append(parts, itemPart{Type: "input_image", ImageURL: url})
		} else {
			parts = append(parts, itemPart{Type: textType, Text: b.Text})
		}
	}
	return parts
}

// outputOf returns the output of a tool: a text, or parts where it has an image or several texts.
func outputOf(blocks []agents.TurnBlock) any {
	switch {
	case len(blocks) == 0:
		return ""
	case len(blocks) == 1 && blocks[0].Data == "":
		return blocks[0].Text
	}
	return partsOf(blocks, "input_text")
}

// message writes an item of words.
func (w *rolloutWriter) message(t *agents.Turn, role string, parts []itemPart) error {
	return w.add(t, itemRecord, messageItem{Type: "message", Role: role, Content: parts})
}

// event writes an event with words, unless there are none.
func (w *rolloutWriter) event(t *agents.Turn, typ, words string) error {
	if words == "" {
		return nil
	}
	return w.add(t, eventRecord, shownEvent{Type: typ, Message: words})
}

// add writes a record at the time of a turn. The first item of the turn names its entry.
func (w *rolloutWriter) add(t *agents.Turn, typ string, payload any) error {
	r := rolloutRecord{
		Timestamp: t.Time.UTC().Format(rawjson.TimestampLayout),
		Type:      typ,
		Payload:   payload,
	}
	if typ == itemRecord {
		r.Entry = w.entry
		w.entry = nil
	}
	return w.write(r)
}

// write writes a record.
func (w *rolloutWriter) write(r rolloutRecord) error {
	line, err := agents.HandoverLine(r)
	if err != nil {
		return err
	}
	_, err = w.out.Write(line)
	return err
}

var _ agents.Receiver = (*Home)(nil)

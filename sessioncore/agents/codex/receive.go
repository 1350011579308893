package codex

import (
	"io"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// This file writes a rollout with a conversation that another agent had (docs/format.md, Handovers to
// another agent), in the form of records without ordinals. Codex 0.171.0 was driven.

// Receive implements agents.Receiver.
func (h *Home) Receive(of *agents.Handover, out io.Writer) (agents.ForkPlace, error) {
	place := newPlace(of.ID, of.Time)
	w := receiver{handover: of, out: out}
	if err := w.begin(); err != nil {
		return place, err
	}
	return place, of.EachTurn(w.turn)
}

// receiver writes the records of a handover.
type receiver struct {
	handover *agents.Handover
	out      io.Writer
}

// received is a record of a handover.
type received struct {
	Timestamp string `json:"timestamp"`
	Type      string `json:"type"`
	Payload   any    `json:"payload"`
}

// receivedMeta is the first record. The client's picker shows only sessions of a terminal.
type receivedMeta struct {
	ID         string                `json:"id"`
	Timestamp  string                `json:"timestamp"`
	CWD        string                `json:"cwd"`
	Originator string                `json:"originator"`
	CLIVersion string                `json:"cli_version"`
	Source     string                `json:"source"`
	Origin     agents.HandoverOrigin `json:"handedOverFrom"`
}

// unknownVersion is the version of the client that wrote a handover: none.
const unknownVersion = "0.0.0"

// receivedItem is an item, or an event.
type receivedItem struct {
	Type      string         `json:"type"`
	Role      string         `json:"role,omitempty"`
	Content   []receivedPart `json:"content,omitempty"`
	Name      string         `json:"name,omitempty"`
	Arguments string         `json:"arguments,omitempty"`
	CallID    string         `json:"call_id,omitempty"`
	Output    any            `json:"output,omitempty"`
	Message   string         `json:"message,omitempty"`
	ThreadID  string         `json:"thread_id,omitempty"`
	Title     string         `json:"thread_name,omitempty"`
}

// receivedPart is a part of a content.
type receivedPart struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	ImageURL string `json:"image_url,omitempty"`
}

// begin writes the first record, and the title.
func (w *receiver) begin() error {
	of := w.handover
	now := of.Time.UTC().Format(rawjson.TimestampLayout)
	meta := receivedMeta{
		ID:         of.ID,
		Timestamp:  now,
		CWD:        of.CWD,
		Originator: "codex-tui",
		CLIVersion: unknownVersion,
		Source:     "cli",
		Origin:     of.Origin,
	}
	if err := w.write(received{Timestamp: now, Type: "session_meta", Payload: meta}); err != nil || of.Title == "" {
		return err
	}
	title := receivedItem{Type: "thread_name_updated", ThreadID: of.ID, Title: of.Title}
	return w.write(received{Timestamp: now, Type: "event_msg", Payload: title})
}

// turn writes the records of a turn. Only events show in the client's terminal.
func (w *receiver) turn(t *agents.Turn) error {
	switch t.By {
	case agents.BySummary:
		return w.add(t, "compacted", receivedItem{Message: t.Texts()})
	case agents.ByTool:
		return w.item(t, receivedItem{Type: "function_call_output", CallID: t.Call, Output: outputOf(t.Blocks)})
	case agents.ByModel:
		return w.answer(t)
	default:
		if err := w.item(t, receivedItem{Type: "message", Role: "user", Content: partsOf(t.Blocks, "input_text")}); err != nil {
			return err
		}
		return w.event(t, "user_message", t.Texts())
	}
}

// answer writes the items of an answer: each of its runs of texts, and each call.
func (w *receiver) answer(t *agents.Turn) error {
	for i := range t.Blocks {
		b := t.Blocks[i : i+1]
		if call := &b[0]; call.Call != "" {
			item := receivedItem{Type: "function_call", Name: call.Tool, Arguments: string(call.Arguments), CallID: call.Call}
			if err := w.item(t, item); err != nil {
				return err
			}
			continue
		}
		if err := w.event(t, "agent_message", b[0].Text); err != nil {
			return err
		}
		if err := w.item(t, receivedItem{Type: "message", Role: "assistant", Content: partsOf(b, "output_text")}); err != nil {
			return err
		}
	}
	return nil
}

// partsOf returns blocks as parts of a message, or of the output of a tool.
func partsOf(blocks []agents.TurnBlock, textType string) []receivedPart {
	var parts []receivedPart
	for _, b := range blocks {
		if b.Data != "" {
			parts = append(parts, receivedPart{Type: "input_image", ImageURL: "data:" + b.MediaType + ";base64," + b.Data})
		} else {
			parts = append(parts, receivedPart{Type: textType, Text: b.Text})
		}
	}
	return parts
}

// outputOf returns the output of a tool: a text, or a list where it has an image or several texts.
func outputOf(blocks []agents.TurnBlock) any {
	switch {
	case len(blocks) == 0:
		return ""
	case len(blocks) == 1 && blocks[0].Data == "":
		return blocks[0].Text
	}
	return partsOf(blocks, "input_text")
}

// item writes an item to or from the model.
func (w *receiver) item(t *agents.Turn, item receivedItem) error { return w.add(t, "response_item", item) }

// event writes an event with words, unless there are none.
func (w *receiver) event(t *agents.Turn, typ, words string) error {
	if words == "" {
		return nil
	}
	return w.add(t, "event_msg", receivedItem{Type: typ, Message: words})
}

// add writes a record at the time of a turn.
func (w *receiver) add(t *agents.Turn, typ string, payload any) error {
	return w.write(received{Timestamp: t.Time.UTC().Format(rawjson.TimestampLayout), Type: typ, Payload: payload})
}

// write writes a record.
func (w *receiver) write(r received) error {
	line := rawjson.AppendLine(nil, r)
	if len(line) > agents.MaxForkedRecord {
		return agents.NoFork("a record of it would have %d bytes, at most %d can be written", len(line), agents.MaxForkedRecord)
	}
	_, err := w.out.Write(line)
	return err
}

var _ agents.Receiver = (*Home)(nil)

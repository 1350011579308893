package copilot

import (
	"encoding/json"
	"fmt"
	"io"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// This file writes a session with a conversation that another agent had (docs/format.md, Handovers to
// another agent). GitHub Copilot CLI 1.0.102 was driven.

var _ agents.Receiver = (*Home)(nil)

// Receive implements agents.Receiver. The error is a ForkError for a directory that the JSON of events cannot have.
func (h *Home) Receive(of *agents.Handover, out io.Writer) (agents.ForkPlace, error) {
	place := agents.ForkPlace{Dir: stateDir, File: path.Join(of.ID, eventsName)}
	if !utf8.ValidString(of.CWD) {
		return place, agents.NoFork("its working directory is no UTF-8")
	}
	if of.Title != "" {
		cwd := rawjson.Value(rawjson.Quote(of.CWD))
		text := workspaceText(of.ID, cwd, of.Title, of.Time)
		file := path.Join(of.ID, workspaceName)
		place.Beside = map[string]agents.Content{file: agents.TextContent(text)}
	}
	w := &eventWriter{out: out}
	err := w.begin(of)
	if err != nil {
		return place, err
	}
	return place, of.EachTurn(w.turn)
}

// eventWriter writes the events of a handover. Each one names the one before it.
type eventWriter struct {
	out  io.Writer
	last string // the id of the last event
}

// madeEvent is an event of a handover.
type madeEvent struct {
	Type      string              `json:"type"`
	Data      any                 `json:"data"`
	ID        string              `json:"id"`
	Timestamp string              `json:"timestamp"`
	Parent    *string             `json:"parentId"`
	Entry     *agents.HandedEntry `json:"handedOver,omitempty"`
}

// startData is the event that begins a file.
type startData struct {
	SessionID string                `json:"sessionId"`
	Version   int                   `json:"version"`
	Producer  string                `json:"producer"`
	Client    string                `json:"copilotVersion"`
	StartTime string                `json:"startTime"`
	Context   startContext          `json:"context"`
	InUse     bool                  `json:"alreadyInUse"`
	Remote    bool                  `json:"remoteSteerable"`
	Origin    agents.HandoverOrigin `json:"handedOverFrom"`
}

type startContext struct {
	CWD string `json:"cwd"`
}

// begin writes the first event.
func (w *eventWriter) begin(of *agents.Handover) error {
	return w.write(of.Time, nil, "session.start", startData{
		SessionID: of.ID,
		Version:   1,
		Producer:  "copilot-agent",
		Client:    agents.NoVersion,
		StartTime: timeText(of.Time),
		Context:   startContext{CWD: of.CWD},
		Origin:    of.Origin,
	})
}

// timeText returns a time in the form of the client.
func timeText(at time.Time) string { return at.UTC().Format(rawjson.TimestampLayout) }

// compactionData is a compaction. Its tokens are not known, and 0.
type compactionData struct {
	Success bool   `json:"success"`
	Summary string `json:"summaryContent"`
	Tokens  int    `json:"preCompactionTokens"`
}

// turn writes the events of a turn.
func (w *eventWriter) turn(t *agents.Turn) error {
	switch t.By {
	case agents.BySummary:
		compaction := compactionData{Success: true, Summary: t.Texts("\n\n")}
		return w.write(t.Time, nil, "session.compaction_complete", compaction)
	case agents.ByModel:
		return w.answer(t)
	case agents.ByTool:
		return w.result(t)
	}
	return w.message(t)
}

// messageData is a message to the model. One with a source is the client's.
type messageData struct {
	Content     string       `json:"content"`
	Attachments []attachment `json:"attachments"`
	Source      string       `json:"source,omitempty"`
}

// attachment is an image of a message. The client leaves out one without a path, which need not be there.
type attachment struct {
	Type     string `json:"type"`
	AssetID  string `json:"assetId"`
	MIMEType string `json:"mimeType"`
	Name     string `json:"displayName"`
	Path     string `json:"path"`
}

// assetData is the event with the bytes of an image, before the message.
type assetData struct {
	AssetID  string `json:"assetId"`
	Type     string `json:"type"`
	MIMEType string `json:"mimeType"`
	Data     string `json:"data"`
	Size     int    `json:"byteLength"`
}

// message writes a message, and before it the images.
func (w *eventWriter) message(t *agents.Turn) error {
	m := messageData{Content: t.Texts("\n"), Attachments: []attachment{}}
	if t.By == agents.ByProgram {
		m.Source = "system"
	}
	for i := range t.Blocks {
		b := &t.Blocks[i]
		if b.Data == "" {
			continue
		}
		asset := assetData{
			AssetID:  agents.NewUUID(),
			Type:     "image",
			MIMEType: b.MediaType,
			Data:     b.Data,
			Size:     len(b.Data) / 4 * 3, // about, of base64
		}
		err := w.write(t.Time, nil, "session.binary_asset", asset)
		if err != nil {
			return err
		}
		_, ending, _ := strings.Cut(b.MediaType, "/") // such as png
		name := fmt.Sprintf("image-%d.%s", len(m.Attachments)+1, ending)
		m.Attachments = append(m.Attachments, attachment{
			Type:     "file",
			AssetID:  asset.AssetID,
			MIMEType: b.MediaType,
			Name:     name,
			Path:     name,
		})
	}
	return w.write(t.Time, t.Entry, "user.message", m)
}

// answerData is an answer.
type answerData struct {
	MessageID string        `json:"messageId"`
	Model     string        `json:"model,omitempty"`
	Content   string        `json:"content"`
	Calls     []callRequest `json:"toolRequests"`
}

type callRequest struct {
	ID        string          `json:"toolCallId"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Type      string          `json:"type"`
}

// startedCall is the event that begins a call.
type startedCall struct {
	ID        string          `json:"toolCallId"`
	Tool      string          `json:"toolName"`
	Arguments json.RawMessage `json:"arguments"`
}

// answer writes an answer, and the event that begins each of its calls.
func (w *eventWriter) answer(t *agents.Turn) error {
	answer := answerData{
		MessageID: agents.NewUUID(),
		Model:     t.Model,
		Content:   t.Texts("\n"),
		Calls:     []callRequest{},
	}
	for i := range t.Blocks {
		b := &t.Blocks[i]
		if b.Call == "" {
			continue
		}
		answer.Calls = append(answer.Calls, callRequest{
			ID:        b.Call,
			Name:      b.Tool,
			Arguments: json.RawMessage(b.Arguments),
			Type:      "function",
		})
	}
	err := w.write(t.Time, t.Entry, "assistant.message", answer)
	if err != nil {
		return err
	}
	for i := range answer.Calls {
		call := &answer.Calls[i]
		started := startedCall{ID: call.ID, Tool: call.Name, Arguments: call.Arguments}
		err := w.write(t.Time, nil, "tool.execution_start", started)
		if err != nil {
			return err
		}
	}
	return nil
}

// resultData is the result of a call.
type resultData struct {
	Call    string         `json:"toolCallId"`
	Success bool           `json:"success"`
	Result  *resultContent `json:"result,omitempty"`
	Error   *resultError   `json:"error,omitempty"`
}

type resultContent struct {
	Content string        `json:"content"`
	Images  []resultImage `json:"binaryResultsForLlm,omitempty"`
}

type resultImage struct {
	Type     string `json:"type"`
	Data     string `json:"data"`
	MIMEType string `json:"mimeType"`
}

type resultError struct {
	Message string `json:"message"`
	Code    string `json:"code"`
}

// result writes the result of a call. The result of a failed call with an image is written as a success, as an
// error has only words.
func (w *eventWriter) result(t *agents.Turn) error {
	content := &resultContent{Content: t.Texts("\n")}
	for i := range t.Blocks {
		b := &t.Blocks[i]
		if b.Data != "" {
			image := resultImage{Type: "image", Data: b.Data, MIMEType: b.MediaType}
			content.Images = append(content.Images, image)
		}
	}
	result := resultData{Call: t.Call}
	hasOnlyWords := len(content.Images) == 0 && content.Content != ""
	if t.IsError && hasOnlyWords {
		result.Error = &resultError{Message: content.Content, Code: "failure"}
	} else {
		result.Success = true
		result.Result = content
	}
	return w.write(t.Time, t.Entry, "tool.execution_complete", result)
}

// write writes an event of a type, with the last one as its parent. entry is nil for all but the first event of a turn.
func (w *eventWriter) write(at time.Time, entry *agents.HandedEntry, typ string, data any) error {
	event := madeEvent{
		Type:      typ,
		Data:      data,
		ID:        agents.NewUUID(),
		Timestamp: timeText(at),
		Entry:     entry,
	}
	if w.last != "" { // the first event has null
		before := w.last
		event.Parent = &before
	}
	w.last = event.ID
	line, err := agents.HandoverLine(event)
	if err != nil {
		return err
	}
	_, err = w.out.Write(line)
	return err
}

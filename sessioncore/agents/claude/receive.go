package claude

import (
	"encoding/json"
	"io"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// This file writes a session with a conversation that another agent had (docs/format.md, Handovers to
// another agent).

// maxProject is the length of the longest name of a project's directory that is made of the working
// directory alone.
const maxProject = 200

// Receive implements agents.Receiver.
func (Format) Receive(h *agents.Handover, out io.Writer) (agents.ForkPlace, error) {
	project := projectOf(h.CWD)
	place := agents.ForkPlace{Dir: projectsDir, File: path.Join(project, h.ID+ending)}
	switch {
	case !utf8.ValidString(h.CWD):
		return place, agents.NoFork("its working directory is no UTF-8")
	case len(project) > maxProject:
		return place, agents.NoFork("its working directory has more than %d characters", maxProject)
	}
	w := receiver{handover: h, out: out}
	err := h.EachTurn(w.turn)
	if err != nil {
		return place, err
	}
	titled := forkWriter{out: out, id: h.ID}
	return place, titled.writeTitle(h.Title)
}

// projectOf returns the name of the directory of a working directory's sessions. Each unit of UTF-16 that
// is neither letter nor digit is a dash.
func projectOf(cwd string) string {
	var name strings.Builder
	for _, r := range cwd {
		isKept := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		switch {
		case isKept:
			name.WriteRune(r)
		case r > 0xFFFF:
			name.WriteString("--")
		default:
			name.WriteByte('-')
		}
	}
	return name.String()
}

// receiver writes the records of a handover. Each one is the parent of the next.
type receiver struct {
	handover *agents.Handover
	out      io.Writer
	before   string // uuid of the record written last
}

// received is a record of a handover.
type received struct {
	ParentUUID       *string                `json:"parentUuid"`
	IsSidechain      bool                   `json:"isSidechain"`
	UserType         string                 `json:"userType"`
	Entrypoint       string                 `json:"entrypoint"`
	CWD              string                 `json:"cwd"`
	SessionID        string                 `json:"sessionId"`
	Type             string                 `json:"type"`
	Subtype          string                 `json:"subtype,omitempty"`
	IsMeta           bool                   `json:"isMeta,omitempty"`
	Content          string                 `json:"content,omitempty"`
	Compaction       *compactMetadata       `json:"compactMetadata,omitempty"`
	IsCompactSummary bool                   `json:"isCompactSummary,omitempty"`
	IsTranscriptOnly bool                   `json:"isVisibleInTranscriptOnly,omitempty"`
	Message          any                    `json:"message,omitempty"`
	UUID             string                 `json:"uuid"`
	Timestamp        string                 `json:"timestamp"`
	Origin           *agents.HandoverOrigin `json:"handedOverFrom,omitempty"`
	Entry            *agents.HandedEntry    `json:"handedOver,omitempty"`
}

type compactMetadata struct {
	Trigger   string `json:"trigger"`
	PreTokens int64  `json:"preTokens"`
}

// receivedMessage is the message of a record. It has no usage, so that the original's counts once.
type receivedMessage struct {
	ID         string `json:"id,omitempty"`
	Type       string `json:"type,omitempty"`
	Role       string `json:"role"`
	Model      string `json:"model,omitempty"`
	Content    any    `json:"content"`
	StopReason string `json:"stop_reason,omitempty"`
}

// receivedBlock is a block of a message's content.
type receivedBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	Source    *imageSource    `json:"source,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   any             `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
}

type imageSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

// turn writes the records of a turn.
func (w *receiver) turn(t *agents.Turn) error {
	switch t.By {
	case agents.BySummary:
		return w.summary(t)
	case agents.ByModel:
		return w.answer(t)
	case agents.ByTool:
		result := receivedBlock{Type: "tool_result", ToolUseID: t.Call, Content: contentOf(t.Blocks)}
		result.IsError = t.IsError && !slices.ContainsFunc(t.Blocks, isImage) // of an error, only texts are sent
		return w.user(t, []receivedBlock{result})
	default:
		return w.user(t, contentOf(t.Blocks))
	}
}

func isImage(b agents.TurnBlock) bool { return b.Data != "" }

// summary writes the records of a compaction.
func (w *receiver) summary(t *agents.Turn) error {
	boundary := w.record(t, "system")
	boundary.Subtype = "compact_boundary"
	boundary.Content = "Conversation compacted"
	boundary.Compaction = &compactMetadata{Trigger: "manual"}
	err := w.write(boundary)
	if err != nil {
		return err
	}
	summary := w.record(t, "user")
	summary.IsCompactSummary = true
	summary.IsTranscriptOnly = true
	summary.Message = &receivedMessage{Role: "user", Content: t.Texts("\n\n")}
	return w.write(summary)
}

// user writes a record in the person's name. The client sends and does not show those of a program.
func (w *receiver) user(t *agents.Turn, content any) error {
	r := w.record(t, "user")
	r.IsMeta = t.By == agents.ByProgram
	r.Entry = t.Entry
	r.Message = &receivedMessage{Role: "user", Content: content}
	return w.write(r)
}

// answer writes a record for each block of an answer, as the client does.
func (w *receiver) answer(t *agents.Turn) error {
	id := "msg_" + strings.ReplaceAll(agents.NewUUID(), "-", "")
	reason := "end_turn"
	for i := range t.Blocks {
		if t.Blocks[i].Call != "" {
			reason = "tool_use"
		}
	}
	model := t.Model
	if model == "" {
		model = provider.Model
	}
	for i, block := range blocksFor(t.Blocks) {
		r := w.record(t, "assistant")
		if i == 0 {
			r.Entry = t.Entry
		}
		r.Message = &receivedMessage{
			ID:         id,
			Type:       "message",
			Role:       "assistant",
			Model:      model,
			Content:    []receivedBlock{block},
			StopReason: reason,
		}
		err := w.write(r)
		if err != nil {
			return err
		}
	}
	return nil
}

// contentOf returns the content of a message: its only text, or its blocks.
func contentOf(blocks []agents.TurnBlock) any {
	if len(blocks) == 0 {
		return ""
	}
	if len(blocks) == 1 && blocks[0].Text != "" {
		return blocks[0].Text
	}
	return blocksFor(blocks)
}

// blocksFor returns the blocks of a turn in the client's form.
func blocksFor(blocks []agents.TurnBlock) []receivedBlock {
	var all []receivedBlock
	for _, b := range blocks {
		switch {
		case b.Call != "":
			all = append(all, receivedBlock{Type: "tool_use", ID: b.Call, Name: b.Tool, Input: json.RawMessage(b.Arguments)})
		case b.Data != "":
			source := &imageSource{Type: "base64", MediaType: b.MediaType, Data: b.Data}
			all = append(all, receivedBlock{Type: "image", Source: source})
		default:
			all = append(all, receivedBlock{Type: "text", Text: b.Text})
		}
	}
	return all
}

// record returns a record behind the one written last.
func (w *receiver) record(t *agents.Turn, typ string) *received {
	r := &received{
		UserType:   "external",
		Entrypoint: "cli", // the picker of sessions shows no others
		CWD:        w.handover.CWD,
		SessionID:  w.handover.ID,
		Type:       typ,
		UUID:       agents.NewUUID(),
		Timestamp:  t.Time.UTC().Format(rawjson.TimestampLayout),
	}
	if w.before == "" {
		r.Origin = &w.handover.Origin
	} else {
		before := w.before
		r.ParentUUID = &before
	}
	return r
}

// write writes a record.
func (w *receiver) write(r *received) error {
	w.before = r.UUID
	line, err := agents.HandoverLine(r)
	if err != nil {
		return err
	}
	_, err = w.out.Write(line)
	return err
}

var _ agents.Receiver = Format{}

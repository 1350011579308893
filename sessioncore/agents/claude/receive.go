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

// maxUnit is the largest character that is one unit of UTF-16.
const maxUnit = 0xFFFF

// Receive implements agents.Receiver. It refuses a working directory without a directory of its own for its sessions.
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
	title := forkWriter{out: out, id: h.ID}
	return place, title.writeTitle(h.Title)
}

// projectOf returns the name of the directory of a working directory's sessions. Each unit of UTF-16 that
// is neither letter nor digit is a dash.
func projectOf(cwd string) string {
	var name strings.Builder
	for _, r := range cwd {
		isLetter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		isDigit := r >= '0' && r <= '9'
		switch {
		case isLetter || isDigit:
			name.WriteRune(r)
		case r > maxUnit: // two units
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
		return w.result(t)
	default:
		return w.user(t, contentOf(t.Blocks))
	}
}

// result writes the record of a tool's result. One with an image is no error, as the client sends only the texts of an
// error.
func (w *receiver) result(t *agents.Turn) error {
	hasImage := slices.ContainsFunc(t.Blocks, isImage)
	result := receivedBlock{
		Type:      "tool_result",
		ToolUseID: t.Call,
		Content:   contentOf(t.Blocks),
		IsError:   t.IsError && !hasImage,
	}
	return w.user(t, []receivedBlock{result})
}

func isImage(b agents.TurnBlock) bool { return b.Data != "" }

// summary writes the records of a compaction: its boundary, and the text.
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

// user writes a record in the person's name, with the content of a message or a list of blocks. The client sends and does
// not show those of a program.
func (w *receiver) user(t *agents.Turn, content any) error {
	r := w.record(t, "user")
	r.IsMeta = t.By == agents.ByProgram
	r.Entry = t.Entry
	r.Message = &receivedMessage{Role: "user", Content: content}
	return w.write(r)
}

// answer writes a record for each block of an answer, as the client does.
func (w *receiver) answer(t *agents.Turn) error {
	id := "msg_" + strings.ReplaceAll(agents.NewUUID(), "-", "") // as the provider's ids look
	model := t.Model
	if model == "" {
		model = provider.Model
	}
	for i, block := range blocksFor(t.Blocks) {
		r := w.record(t, "assistant")
		isFirst := i == 0
		if isFirst { // an answer is one entry, and has its id once
			r.Entry = t.Entry
		}
		r.Message = &receivedMessage{
			ID:         id,
			Type:       "message",
			Role:       "assistant",
			Model:      model,
			Content:    []receivedBlock{block},
			StopReason: stopReasonOf(t.Blocks),
		}
		err := w.write(r)
		if err != nil {
			return err
		}
	}
	return nil
}

// stopReasonOf returns the reason for the end of an answer in the client's words.
func stopReasonOf(blocks []agents.TurnBlock) string {
	isCall := func(b agents.TurnBlock) bool { return b.Call != "" }
	if slices.ContainsFunc(blocks, isCall) {
		return "tool_use"
	}
	return "end_turn"
}

// contentOf returns the content of a message: its only text, or its blocks. It is "" without blocks.
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
			all = append(all, receivedBlock{
				Type:  "tool_use",
				ID:    b.Call,
				Name:  b.Tool,
				Input: json.RawMessage(b.Arguments),
			})
		case b.Data != "":
			source := &imageSource{Type: "base64", MediaType: b.MediaType, Data: b.Data}
			all = append(all, receivedBlock{Type: "image", Source: source})
		default:
			all = append(all, receivedBlock{Type: "text", Text: b.Text})
		}
	}
	return all
}

// record returns a record of a turn, without its content. It hangs on the record written last; the first one names the
// session that is handed over instead.
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
		parent := w.before // a copy, as write sets w.before
		r.ParentUUID = &parent
	}
	return r
}

// write writes a record, and makes it the parent of the next one.
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

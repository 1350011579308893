package opencode

import (
	"encoding/json"
	"io"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// This file writes the text of a session with a conversation that another agent had (docs/format.md,
// Handovers to another agent).

var _ agents.OwnIDs = forkable{}

// SessionID implements agents.OwnIDs.
func (f forkable) SessionID(uuid string, at time.Time) string { return sessionID(uuid, at) }

// Receive implements agents.Receiver. It refuses a directory that is no UTF-8, as the client's JSON cannot have it.
func (f forkable) Receive(h *agents.Handover, out io.Writer) (agents.ForkPlace, error) {
	made := madeSession{
		ID:        h.ID,
		Directory: h.CWD,
		Version:   agents.NoVersion,
		Created:   h.Time.UnixMilli(),
		Title:     h.Title,
		Metadata:  &madeMetadata{Origin: h.Origin},
	}
	if made.Title == "" {
		made.Title = "New session - " + h.Time.UTC().Format(rawjson.TimestampLayout)
	}
	if !utf8.ValidString(h.CWD) {
		return made.place(), agents.NoFork("its working directory is no UTF-8")
	}
	model, err := f.lastModel()
	if err != nil {
		return made.place(), err
	}
	w := &messageWriter{out: out, made: &made, model: model, ids: idsAt(h.Time)}
	_, err = out.Write(rawjson.AppendLine(nil, map[string]madeSession{"session": made}))
	if err == nil {
		err = h.EachTurn(w.turn)
	}
	if err == nil {
		err = w.flush()
	}
	return made.place(), err
}

// promptModel is the model of a prompt.
type promptModel struct {
	Provider string `json:"providerID"`
	Model    string `json:"modelID"`
}

// lastModel returns the model of the last prompt in the session that changed last. The client refuses a
// prompt of a model that it does not know.
func (f forkable) lastModel() (promptModel, error) {
	none := agents.NoFork("OpenCode has no session yet that names a model: ask it something once")
	if f.files == nil {
		return promptModel{}, none
	}
	l, err := f.sessions()
	if err != nil {
		return promptModel{}, err
	}
	name := l.lastChanged()
	if name == "" {
		return promptModel{}, none
	}
	obj, err := f.Open(name)
	if err != nil {
		return promptModel{}, err
	}
	defer obj.Close()
	return modelIn(obj, none)
}

// lastChanged returns the name of the session that changed last, of those that no other one called; "" for none.
func (l *list) lastChanged() (name string) {
	latest := int64(0)
	for dir, ids := range l.top {
		for _, id := range ids {
			s := l.sessions[id]
			if s.updated > latest {
				latest = s.updated
				name = path.Join(dir, id+ending)
			}
		}
	}
	return name
}

// modelIn returns the model of the last prompt in a text, and the error none if no prompt names one.
func modelIn(obj storage.Object, none error) (last promptModel, err error) {
	err = eachLine(obj, func(_ *jsonl.Unit, line agents.Object) error {
		model := line.Member("info").Member("model")
		provider, isNamed := model.Member("providerID").Text()
		if isNamed {
			last.Provider = provider
			last.Model, _ = model.Member("modelID").Text()
		}
		return nil
	})
	if err == nil && last.Model == "" {
		err = none
	}
	return last, err
}

// messageWriter writes the lines of a handover's messages. An answer waits for the results of its calls,
// which are parts of it. Callers must flush it behind the last turn.
type messageWriter struct {
	out     io.Writer
	made    *madeSession
	model   promptModel
	ids     *newIDs
	prompt  string    // the id of the last message that is no answer
	waiting *madeLine // the answer that is not written yet, nil for none
}

// madeLine is a message with its parts.
type madeLine struct {
	ID      string     `json:"id"`
	Removed bool       `json:"removed"`
	Info    madeInfo   `json:"info"`
	Parts   []madePart `json:"parts"`
}

type madeInfo struct {
	Role     string       `json:"role"`
	Parent   string       `json:"parentID,omitempty"`
	Time     madeTime     `json:"time"`
	Agent    string       `json:"agent"`
	Mode     string       `json:"mode,omitempty"`
	Model    *promptModel `json:"model,omitempty"`
	Path     *madePath    `json:"path,omitempty"`
	Cost     *int         `json:"cost,omitempty"`
	Tokens   *madeTokens  `json:"tokens,omitempty"`
	Provider string       `json:"providerID,omitempty"`
	ModelID  string       `json:"modelID,omitempty"`
	Finish   string       `json:"finish,omitempty"`
	Summary  bool         `json:"summary,omitempty"`
}

type madeTime struct {
	Created   int64 `json:"created"`
	Completed int64 `json:"completed,omitempty"`
}

type madePath struct {
	CWD  string `json:"cwd"`
	Root string `json:"root"`
}

// madeTokens are the tokens of an answer, all 0, so that the original's count once.
type madeTokens struct {
	Input     int `json:"input"`
	Output    int `json:"output"`
	Reasoning int `json:"reasoning"`
	Cache     struct {
		Read  int `json:"read"`
		Write int `json:"write"`
	} `json:"cache"`
}

type madePart struct {
	ID   string   `json:"id"`
	Data madeData `json:"data"`
}

// madeData is a part of a message: a text, an image, a call, or the begin of a compaction.
type madeData struct {
	Type      string      `json:"type"`
	Text      string      `json:"text,omitempty"`
	Synthetic bool        `json:"synthetic,omitempty"`
	Auto      *bool       `json:"auto,omitempty"`
	MIME      string      `json:"mime,omitempty"`
	Filename  string      `json:"filename,omitempty"`
	URL       string      `json:"url,omitempty"`
	CallID    string      `json:"callID,omitempty"`
	Tool      string      `json:"tool,omitempty"`
	State     *madeState  `json:"state,omitempty"`
	Metadata  *handedOver `json:"metadata,omitempty"`
}

// handedOver is the metadata of a part that has the entry which its message, or its result, was.
type handedOver struct {
	Entry *agents.HandedEntry `json:"handedOver,omitempty"`
}

type madeState struct {
	Status      string           `json:"status"`
	Input       json.RawMessage  `json:"input"`
	Output      *string          `json:"output,omitempty"`
	Error       string           `json:"error,omitempty"`
	Title       *string          `json:"title,omitempty"`
	Metadata    handedOver       `json:"metadata"`
	Time        madeSpan         `json:"time"`
	Attachments []madeAttachment `json:"attachments,omitempty"`
}

type madeSpan struct {
	Start int64 `json:"start"`
	End   int64 `json:"end"`
}

// madeAttachment is an image of a result.
type madeAttachment struct {
	ID        string `json:"id"`
	SessionID string `json:"sessionID"`
	MessageID string `json:"messageID"`
	Type      string `json:"type"`
	MIME      string `json:"mime"`
	URL       string `json:"url"`
}

// turn writes the messages of a turn. An answer waits; a result goes into the waiting answer.
func (w *messageWriter) turn(t *agents.Turn) error {
	if t.By == agents.ByTool {
		w.result(t)
		return nil
	}
	err := w.flush()
	if err != nil {
		return err
	}
	switch t.By {
	case agents.ByModel:
		w.waiting = w.answer(t)
		return nil
	case agents.BySummary:
		return w.summary(t)
	}
	m := w.userMessage(t)
	m.Parts = w.parts(t)
	m.mark(t.Entry)
	return w.write(m)
}

// userMessage returns a new message of the person, without parts. Answers behind it name it as their parent.
func (w *messageWriter) userMessage(t *agents.Turn) *madeLine {
	m := w.message(t, "user")
	model := w.model
	m.Info.Model = &model
	w.prompt = m.ID
	return m
}

// message returns a new message of a role, at the time of a turn.
func (w *messageWriter) message(t *agents.Turn, role string) *madeLine {
	m := &madeLine{ID: w.ids.next(messagePrefix), Info: madeInfo{Role: role, Agent: "build"}}
	m.Info.Time.Created = t.Time.UnixMilli()
	return m
}

// modelMessage returns a new message of the model, without parts, as one that ended. Its cost and its tokens are 0.
func (w *messageWriter) modelMessage(t *agents.Turn) *madeLine {
	m := w.message(t, "assistant")
	m.Info.Parent = w.prompt
	m.Info.Time.Completed = t.Time.UnixMilli()
	m.Info.Mode = "build"
	m.Info.Path = &madePath{CWD: w.made.Directory, Root: w.made.Directory}
	m.Info.Cost = new(int)
	m.Info.Tokens = &madeTokens{}
	m.Info.Provider = "unknown"
	m.Info.ModelID = t.Model
	if t.Model == "" {
		m.Info.ModelID = "unknown"
	}
	m.Info.Finish = "stop"
	return m
}

// parts returns the parts of a turn's blocks. Text of a program is synthetic, which the client shows to the model alone; beside
// an image it is not, as no image can be.
func (w *messageWriter) parts(t *agents.Turn) (parts []madePart) {
	isSynthetic := t.By == agents.ByProgram && !slices.ContainsFunc(t.Blocks, isImage)
	for i := range t.Blocks {
		b := &t.Blocks[i]
		p := madePart{ID: w.ids.next(partPrefix)}
		switch {
		case b.Call != "":
			state := &madeState{Input: json.RawMessage(b.Arguments)}
			p.Data = madeData{Type: "tool", CallID: b.Call, Tool: b.Tool, State: state}
		case b.Data != "":
			_, subtype, _ := strings.Cut(b.MediaType, "/")
			p.Data = madeData{Type: "file", MIME: b.MediaType, Filename: "image." + subtype, URL: imageURL(b)}
		default:
			p.Data = madeData{Type: "text", Text: b.Text, Synthetic: isSynthetic}
		}
		parts = append(parts, p)
	}
	return parts
}

func isImage(b agents.TurnBlock) bool { return b.Data != "" }

func imageURL(b *agents.TurnBlock) string { return "data:" + b.MediaType + ";base64," + b.Data }

// mark names the entry that a message was, nil for none, in its first part that is no file: files have no metadata.
func (m *madeLine) mark(entry *agents.HandedEntry) {
	if entry == nil {
		return
	}
	for i := range m.Parts {
		data := &m.Parts[i].Data
		if data.Type != "file" {
			data.Metadata = &handedOver{Entry: entry}
			return
		}
	}
}

// answer returns the message of an answer. Its calls wait for their results.
func (w *messageWriter) answer(t *agents.Turn) *madeLine {
	m := w.modelMessage(t)
	m.Parts = w.parts(t)
	m.mark(t.Entry)
	for i := range m.Parts {
		if m.Parts[i].Data.Type == "tool" {
			m.Info.Finish = "tool-calls"
		}
	}
	return m
}

// result adds a result to its call in the waiting answer, which there must be.
func (w *messageWriter) result(t *agents.Turn) {
	for i := range w.waiting.Parts {
		data := &w.waiting.Parts[i].Data
		if data.CallID == t.Call && data.State != nil {
			w.complete(data.State, t)
		}
	}
}

// complete sets the result of a call. An error has no images and needs a text in the client's form: else it is a result.
func (w *messageWriter) complete(state *madeState, t *agents.Turn) {
	ms := t.Time.UnixMilli()
	text := t.Texts("\n")
	state.Time = madeSpan{Start: ms, End: ms}
	state.Metadata.Entry = t.Entry
	state.Attachments = w.attachments(t)
	if t.IsError && len(state.Attachments) == 0 && text != "" {
		state.Status = "error"
		state.Error = text
		return
	}
	state.Status = "completed"
	state.Output = &text
	state.Title = new(string)
}

// attachments returns the images of a result.
func (w *messageWriter) attachments(t *agents.Turn) (all []madeAttachment) {
	for i := range t.Blocks {
		b := &t.Blocks[i]
		if b.Data == "" {
			continue
		}
		all = append(all, madeAttachment{
			ID:        w.ids.next(partPrefix),
			SessionID: w.made.ID,
			MessageID: w.waiting.ID,
			Type:      "file",
			MIME:      b.MediaType,
			URL:       imageURL(b),
		})
	}
	return all
}

// summary writes the messages of a compaction: the one that begins it, and the answer with the summary.
func (w *messageWriter) summary(t *agents.Turn) error {
	begin := w.userMessage(t)
	isAuto := false
	begin.Parts = []madePart{{ID: w.ids.next(partPrefix), Data: madeData{Type: "compaction", Auto: &isAuto}}}
	err := w.write(begin)
	if err != nil {
		return err
	}
	m := w.modelMessage(t)
	m.Info.Summary = true
	m.Info.Mode = "compaction"
	m.Info.Agent = "compaction"
	m.Parts = []madePart{{ID: w.ids.next(partPrefix), Data: madeData{Type: "text", Text: t.Texts("\n\n")}}}
	return w.write(m)
}

// flush writes the answer that waits.
func (w *messageWriter) flush() error {
	m := w.waiting
	w.waiting = nil
	if m == nil {
		return nil
	}
	return w.write(m)
}

// write writes a message.
func (w *messageWriter) write(m *madeLine) error {
	line, err := agents.HandoverLine(m)
	if err != nil {
		return err
	}
	_, err = w.out.Write(line)
	return err
}

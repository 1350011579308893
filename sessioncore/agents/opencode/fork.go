package opencode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// This file makes a fork: the text of a new session with the messages up to an entry, each with a new id, as
// the client's own fork has them. OpenCode 1.18.33 was driven: its import command takes such a session
// (docs/format.md, Forks of other agents).

// forkable is a home with a client that can import sessions by a command.
type forkable struct{ *home }

var _ agents.ByImport = forkable{}

// newIDs makes ids as the client does: of a time in ms, in which all come one after another.
type newIDs struct{ last uint64 }

const (
	// idBits and idDigits are the size of the number in an id, and idTicks is how many ids a ms has.
	idBits   = 48
	idDigits = idBits / 4
	idTicks  = 1 << 12
	// idBefore is the distance of the first id before now, in ms: the ids of the client's next messages are larger.
	idBefore = 10_000
)

// idsAt returns the maker of the ids of a session that is written at a time.
func idsAt(at time.Time) *newIDs {
	begin := uint64(at.UnixMilli() - idBefore)
	return &newIDs{last: begin * idTicks}
}

// next returns an id that is larger than all before.
func (i *newIDs) next(prefix string) string {
	i.last++
	return idOf(prefix, i.last, agents.NewUUID())
}

// idOf returns an id with the last bits of a number, and the beginning of a UUID in the place of the client's random letters.
func idOf(prefix string, number uint64, uuid string) string {
	const randomSize = 14 // characters, as in the client's ids
	random := strings.ReplaceAll(uuid, "-", "")
	return fmt.Sprintf("%s%0*x%s", prefix, idDigits, number%(1<<idBits), random[:randomSize])
}

// sessionID returns the id of a session with a UUID and a time. The client orders sessions by ids, the latest first: so the
// number is the complement of the time.
func sessionID(uuid string, at time.Time) string {
	ticks := uint64(at.UnixMilli()) * idTicks
	return idOf(idPrefix, ^ticks, uuid)
}

// madeSession is the first line of a new session's text: the facts of each text, and the ones of the import.
type madeSession struct {
	ID        string        `json:"id"`
	Directory string        `json:"directory"`
	Version   string        `json:"version"`
	Created   int64         `json:"created"`
	Title     string        `json:"title"`
	Metadata  *madeMetadata `json:"metadata,omitempty"`
}

// madeMetadata is the member of a session that the client keeps for others.
type madeMetadata struct {
	Origin agents.HandoverOrigin `json:"handedOverFrom"`
}

// place returns the place of a new session's text.
func (s *madeSession) place() agents.ForkPlace {
	return agents.ForkPlace{File: path.Join(nameOfDirectory(s.Directory), s.ID+ending)}
}

// Fork implements agents.Forker. It reads the original's text twice: for the messages on the path, and to copy them.
func (f forkable) Fork(request *agents.ForkRequest, out io.Writer) (agents.ForkPlace, error) {
	if f.FactsAbout(request.Name).Side {
		return agents.ForkPlace{}, agents.NoFork("a subagent's session cannot be resumed")
	}
	l, err := f.sessions()
	if err != nil {
		return agents.ForkPlace{}, err
	}
	original := l.find(request.Name)
	if original == nil {
		return agents.ForkPlace{}, agents.Missing(request.Name)
	}
	made := madeSession{
		ID:        sessionID(request.ID, request.Time),
		Directory: original.directory,
		Version:   original.version,
		Created:   request.Time.UnixMilli(),
		Title:     request.Title,
	}
	if made.Title == "" {
		made.Title = original.title + forkMark + "1)"
	}
	_, err = out.Write(rawjson.AppendLine(nil, map[string]madeSession{"session": made}))
	if err != nil {
		return made.place(), err
	}
	obj, err := f.Open(request.Name)
	if err != nil {
		return made.place(), err
	}
	defer obj.Close()
	w := &messageFork{
		request:  request,
		out:      out,
		ids:      idsAt(request.Time),
		included: map[string]bool{},
		renamed:  map[string]string{},
	}
	err = eachLine(obj, w.include)
	if err != nil {
		return made.place(), err
	}
	err = eachLine(obj, w.copy)
	return made.place(), err
}

// eachLine calls f for each JSON object in a text, until f fails; jsonl.ErrStop is no error.
func eachLine(obj storage.Object, f func(u *jsonl.Unit, line agents.Object) error) error {
	st, err := obj.Stat()
	if err != nil {
		return err
	}
	_, err = jsonl.Records{}.Load(context.Background(), obj, jsonl.Position{}, st.Size, func(u *jsonl.Unit) error {
		if u.Kind != jsonl.ObjectUnit {
			return nil
		}
		return f(u, agents.Read(u.Text))
	})
	if errors.Is(err, jsonl.ErrStop) {
		return nil
	}
	return err
}

// messageFork copies the messages of a fork to out.
type messageFork struct {
	request  *agents.ForkRequest
	out      io.Writer
	ids      *newIDs
	included map[string]bool   // the ids of the messages of the fork
	renamed  map[string]string // the new ids of the messages
}

// include adds the message of a line on the path to the fork, and the message that it answers: that is on no path if it only
// begins a compaction, as it has no entry then.
func (w *messageFork) include(u *jsonl.Unit, line agents.Object) error {
	id, isMessage := line.Member("id").Text()
	isOnPath := func(e agents.EntryLines) bool { return slices.Contains(e.Lines, u.Line) }
	if !isMessage || !slices.ContainsFunc(w.request.Path, isOnPath) {
		return nil
	}
	w.included[id] = true
	prompt, isAnswer := line.Member("info").Member("parentID").Text()
	if isAnswer {
		w.included[prompt] = true
	}
	return nil
}

// copy writes the line of a message if the fork has it, with new ids. All messages of the fork must be included before.
func (w *messageFork) copy(u *jsonl.Unit, line agents.Object) error {
	id, _ := line.Member("id").Text()
	if !w.included[id] {
		return nil
	}
	if u.Size > agents.MaxForkedRecord {
		return agents.NoFork("line %d has %d bytes, at most %d can be copied", u.Line, u.Size, agents.MaxForkedRecord)
	}
	renamed := w.ids.next(messagePrefix)
	w.renamed[id] = renamed
	info := line.Member("info")
	prompt, isAnswer := info.Member("parentID").Text()
	if isAnswer {
		parent := rawjson.Field{Key: "parentID", JSON: rawjson.Quote(w.renamed[prompt])}
		info = rawjson.SetMembers(info, []rawjson.Field{parent})
	}
	m := messageLine{id: renamed, info: info}
	for part := range line.Member("parts").EachElement {
		m.parts = append(m.parts, messagePart{id: w.ids.next(partPrefix), data: part.Member("data")})
	}
	_, err := w.out.Write(m.appendTo(nil))
	return err
}

const (
	messagePrefix = "msg_"
	partPrefix    = "prt_"
)

// ImportCommand implements agents.ByImport.
func (f forkable) ImportCommand() []string { return []string{f.name, "import"} }

// Export implements agents.ByImport. It writes the file that the client's own export makes.
func (f forkable) Export(text storage.Object, out io.Writer) (cwd string, err error) {
	e := &exporter{out: out}
	err = eachLine(text, e.line)
	if err == nil {
		_, err = io.WriteString(out, "]}\n")
	}
	return e.cwd, err
}

// exporter writes the file that the client imports.
type exporter struct {
	out        io.Writer
	session    string // its id
	cwd        string
	hasMessage bool // one was written, so that a comma comes before the next
}

// line writes the part of the file that a line of a text becomes.
func (e *exporter) line(_ *jsonl.Unit, line agents.Object) error {
	session := line.Member("session")
	if session.IsObject() {
		return e.begin(agents.Read(session))
	}
	var text []byte
	if e.hasMessage {
		text = append(text, ',')
	}
	e.hasMessage = true
	text = e.appendMessage(text, line)
	_, err := e.out.Write(text)
	return err
}

// appendMessage appends a message with its parts, each with the ids of all that it belongs to.
func (e *exporter) appendMessage(dst []byte, line agents.Object) []byte {
	id, _ := line.Member("id").Text()
	messageID := rawjson.Quote(id)
	sessionID := rawjson.Quote(e.session)
	info := rawjson.SetMembers(line.Member("info"), []rawjson.Field{
		{Key: "id", JSON: messageID},
		{Key: "sessionID", JSON: sessionID},
	})
	dst = append(dst, `{"info":`...)
	dst = append(dst, info...)
	dst = append(dst, `,"parts":[`...)
	isFirst := true
	for part := range line.Member("parts").EachElement {
		if !isFirst {
			dst = append(dst, ',')
		}
		isFirst = false
		data := rawjson.SetMembers(part.Member("data"), []rawjson.Field{
			{Key: "id", JSON: string(part.Member("id"))},
			{Key: "sessionID", JSON: sessionID},
			{Key: "messageID", JSON: messageID},
		})
		dst = append(dst, data...)
	}
	return append(dst, "]}"...)
}

// begin writes the facts of a session, up to its messages. The client finds out the project.
func (e *exporter) begin(session agents.Object) error {
	e.session, _ = session.Member("id").Text()
	e.cwd, _ = session.Member("directory").Text()
	slug := strings.TrimPrefix(e.session, idPrefix)
	created := session.Member("created")
	var facts []byte
	add := func(name string, value []byte) {
		facts = append(facts, name...)
		facts = append(facts, value...)
	}
	add(`{"info":{"id":`, rawjson.AppendQuoted(nil, e.session))
	add(`,"slug":`, rawjson.AppendQuoted(nil, slug))
	add(`,"projectID":"global","directory":`, session.Member("directory"))
	add(`,"title":`, session.Member("title"))
	add(`,"version":`, session.Member("version"))
	add(`,"time":{"created":`, created)
	add(`,"updated":`, created)
	add(`}`, nil)
	metadata := session.Member("metadata")
	if metadata.IsObject() {
		add(`,"metadata":`, metadata)
	}
	add(`},"messages":[`, nil)
	_, err := e.out.Write(facts)
	return err
}

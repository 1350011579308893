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

// forkable is a home whose client has a command that imports sessions.
type forkable struct{ *home }

var _ agents.ByImport = forkable{}

// newIDs makes ids as the client does: of a time in ms, in which all come one after another.
type newIDs struct{ last uint64 }

const (
	// idBits and idDigits are the size of the number in an id, and idTicks is how many ids a ms has.
	idBits   = 48
	idDigits = idBits / 4
	idTicks  = 1 << 12
	// idBefore is how much earlier than now ids begin, in ms: those of the client's next messages are larger.
	idBefore = 10_000
)

func idsAt(at time.Time) *newIDs {
	return &newIDs{last: uint64(at.UnixMilli()-idBefore) * idTicks}
}

// next returns an id that is larger than all before.
func (i *newIDs) next(prefix string) string {
	i.last++
	return idOf(prefix, i.last, agents.NewUUID())
}

// idOf returns an id with a number, and the beginning of a UUID.
func idOf(prefix string, number uint64, uuid string) string {
	random := strings.ReplaceAll(uuid, "-", "")
	return fmt.Sprintf("%s%0*x%s", prefix, idDigits, number%(1<<idBits), random[:14])
}

// sessionID returns the id of a session with a UUID and a time. That of the latest one is the smallest.
func sessionID(uuid string, at time.Time) string {
	return idOf(idPrefix, ^(uint64(at.UnixMilli()) * idTicks), uuid)
}

// madeSession is the first line of a new session's text: the facts of each text, and those of the import.
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

// placeOf returns the place of a session's text.
func (s *madeSession) place() agents.ForkPlace {
	return agents.ForkPlace{File: path.Join(nameOfDirectory(s.Directory), s.ID+ending)}
}

// Fork implements agents.Forker.
func (f forkable) Fork(request *agents.ForkRequest, out io.Writer) (agents.ForkPlace, error) {
	if f.FactsAbout(request.Name).Side {
		return agents.ForkPlace{}, agents.NoFork("a subagent's session cannot be resumed")
	}
	l, err := f.sessions()
	if err != nil {
		return agents.ForkPlace{}, err
	}
	of := l.find(request.Name)
	if of == nil {
		return agents.ForkPlace{}, agents.Missing(request.Name)
	}
	made := madeSession{
		ID:        sessionID(request.ID, request.Time),
		Directory: of.directory,
		Version:   of.version,
		Created:   request.Time.UnixMilli(),
		Title:     request.Title,
	}
	if made.Title == "" {
		made.Title = of.title + forkMark + "1)"
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
	w := &messageFork{request: request, ids: idsAt(request.Time), included: map[string]bool{}, renamed: map[string]string{}}
	err = eachLine(obj, w.include)
	if err != nil {
		return made.place(), err
	}
	return made.place(), eachLine(obj, func(u *jsonl.Unit, line agents.Object) error { return w.copy(u, line, out) })
}

// eachLine calls f for each object in a text.
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

// messageFork copies the messages of a fork.
type messageFork struct {
	request  *agents.ForkRequest
	ids      *newIDs
	included map[string]bool   // the ids of the messages of the fork
	renamed  map[string]string // the new ids of the messages
}

// include adds the message of a line on the path to the fork, and the message that it answers: one that
// only begins a compaction has no entry.
func (w *messageFork) include(u *jsonl.Unit, line agents.Object) error {
	id, isMessage := line.Member("id").Text()
	isOnPath := func(e agents.EntryLines) bool { return slices.Contains(e.Lines, u.Line) }
	if !isMessage || !slices.ContainsFunc(w.request.Path, isOnPath) {
		return nil
	}
	w.included[id] = true
	asked, isAnswer := line.Member("info").Member("parentID").Text()
	if isAnswer {
		w.included[asked] = true
	}
	return nil
}

// copy writes the line of a message of the fork.
func (w *messageFork) copy(u *jsonl.Unit, line agents.Object, out io.Writer) error {
	id, _ := line.Member("id").Text()
	if !w.included[id] {
		return nil
	}
	if u.Size > agents.MaxForkedRecord {
		return agents.NoFork("line %d has %d bytes, at most %d can be copied", u.Line, u.Size, agents.MaxForkedRecord)
	}
	w.renamed[id] = w.ids.next(messagePrefix)
	info := line.Member("info")
	asked, isAnswer := info.Member("parentID").Text()
	if isAnswer {
		info = rawjson.SetMembers(info, []rawjson.Field{{Key: "parentID", JSON: rawjson.Quote(w.renamed[asked])}})
	}
	m := messageLine{id: w.renamed[id], info: info}
	for part := range line.Member("parts").EachElement {
		m.parts = append(m.parts, messagePart{id: w.ids.next(partPrefix), data: part.Member("data")})
	}
	_, err := out.Write(m.appendTo(nil))
	return err
}

const (
	messagePrefix = "msg_"
	partPrefix    = "prt_"
)

// ImportCommand implements agents.ByImport.
func (f forkable) ImportCommand() []string { return []string{f.name, "import"} }

// Export implements agents.ByImport.
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
	out       io.Writer
	session   string // its id
	cwd       string
	isFollows bool // a message was written
}

// line writes the part of the file that a line of a text becomes.
func (e *exporter) line(_ *jsonl.Unit, line agents.Object) error {
	if session := line.Member("session"); session.IsObject() {
		return e.begin(agents.Read(session))
	}
	id, _ := line.Member("id").Text()
	text := []byte{}
	if e.isFollows {
		text = append(text, ',')
	}
	e.isFollows = true
	own := []rawjson.Field{{Key: "id", JSON: rawjson.Quote(id)}, {Key: "sessionID", JSON: rawjson.Quote(e.session)}}
	text = append(text, `{"info":`...)
	text = append(text, rawjson.SetMembers(line.Member("info"), own)...)
	text = append(text, `,"parts":[`...)
	isFirst := true
	for part := range line.Member("parts").EachElement {
		if !isFirst {
			text = append(text, ',')
		}
		isFirst = false
		text = append(text, rawjson.SetMembers(part.Member("data"), []rawjson.Field{
			{Key: "id", JSON: string(part.Member("id"))},
			{Key: "sessionID", JSON: rawjson.Quote(e.session)},
			{Key: "messageID", JSON: rawjson.Quote(id)},
		})...)
	}
	_, err := e.out.Write(append(text, "]}"...))
	return err
}

// begin writes the facts of a session. The client finds out the project.
func (e *exporter) begin(session agents.Object) error {
	e.session, _ = session.Member("id").Text()
	e.cwd, _ = session.Member("directory").Text()
	created := string(session.Member("created"))
	metadata := ""
	if session.Member("metadata").IsObject() {
		metadata = `,"metadata":` + string(session.Member("metadata"))
	}
	_, err := fmt.Fprintf(e.out, `{"info":{"id":%s,"slug":%s,"projectID":"global","directory":%s,"title":%s,"version":%s,"time":{"created":%s,"updated":%[6]s}%s},"messages":[`,
		rawjson.Quote(e.session), rawjson.Quote(strings.TrimPrefix(e.session, idPrefix)), session.Member("directory"), session.Member("title"), session.Member("version"), created, metadata)
	return err
}

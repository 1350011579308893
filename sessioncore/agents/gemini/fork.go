package gemini

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// This file makes a fork: a new log with the lines of a session's log up to an entry. What was taken back,
// compressed or recorded again comes out right by itself, as the client reads such a log from its beginning
// (docs/format.md, Forks of other agents). Gemini CLI 0.61.0 was driven.

var _ agents.Forker = (*home)(nil)

// fileTime is the form of the time in a log's name, which is in UTC.
const fileTime = "2006-01-02T15-04"

// Fork implements agents.Forker.
func (h *home) Fork(request *agents.ForkRequest, out io.Writer) (agents.ForkPlace, error) {
	project, _ := path.Split(request.Name)
	began := request.Time.UTC().Format(fileTime)
	base := prefix + began + "-" + request.ID[:shortID] + ending
	place := agents.ForkPlace{Dir: projectsDir, File: path.Join(project, chatsDir, base)}
	if h.FactsAbout(request.Name).Side {
		return place, errSubagent
	}
	file, _, err := h.Real(request.Name)
	if err != nil {
		return place, err
	}
	if strings.HasSuffix(file, oldEnding) {
		return place, errDocument
	}
	obj, err := h.Open(request.Name)
	if err != nil {
		return place, err
	}
	defer obj.Close()
	now := request.Time.UTC().Format(rawjson.TimestampLayout)
	f := &chatFork{request: request, now: rawjson.Quote(now)}
	err = agents.CopyRecords(obj, request, out, f.record)
	if err != nil {
		return place, err
	}
	err = f.check()
	if err != nil {
		return place, err
	}
	return place, f.writeEnd(out)
}

// The reasons against forks of subagents' sessions and of documents.
var (
	errSubagent = agents.NoFork("a subagent's session cannot be resumed")
	errDocument = agents.NoFork("the session is one document of a client before 0.40.0; " +
		"resume it once, and the client makes a log of it")
)

// chatFork copies the records of a fork.
type chatFork struct {
	request *agents.ForkRequest
	now     string // JSON of the fork's time
	isBegun bool
	talk    chatMessages
	prompt  string // id of the last message in the person's name
	isError bool   // the last record is an error
}

// check returns the reason why the client could not go on with the records, nil for none.
func (f *chatFork) check() error {
	_, hasPrompt := f.talk.places[f.prompt]
	switch {
	case !f.talk.canResume():
		return agents.NoFork("nothing was said up to here, and the client deletes such a session when it starts")
	case f.isError && !hasPrompt:
		return agents.NoFork("the client took the prompt before this error out of the conversation; fork at the prompt")
	}
	return nil
}

// record returns a record as it is, or one that names the session with the fork's id. It notes the messages for check.
func (f *chatFork) record(record *agents.Record) (rawjson.Value, error) {
	isHeader := record.Member("sessionId").IsString() && record.Member("projectHash").IsString()
	if !f.isBegun && !isHeader {
		return nil, agents.NoFork("the log does not begin with its session")
	}
	f.talk.add(record.Object)
	f.isError = record.Member("type").Is("error")
	if record.Member("type").Is("user") {
		f.prompt, _ = record.Member("id").Text()
	}
	isRewind := record.Member("$rewindTo").IsString()
	isMessage := record.Member("id").IsString()
	set := record.Member("$set")
	switch { // in the client's order
	case isRewind || isMessage:
		return record.Value, nil
	case !set.Member("sessionId").Missing():
		id := rawjson.Field{Key: "sessionId", JSON: rawjson.Quote(f.request.ID)}
		changed := rawjson.SetMembers(set, []rawjson.Field{id})
		field := rawjson.Field{Key: "$set", JSON: string(changed)}
		return rawjson.SetMembers(record.Value, []rawjson.Field{field}), nil
	case set.IsObject() || !isHeader:
		return record.Value, nil
	}
	return f.header(record)
}

// header returns a header for the fork. The first one names the original.
func (f *chatFork) header(record *agents.Record) (rawjson.Value, error) {
	if record.Member("kind").Is("subagent") {
		return nil, errSubagent
	}
	fields := []rawjson.Field{
		{Key: "sessionId", JSON: rawjson.Quote(f.request.ID)},
		{Key: "startTime", JSON: f.now},
		{Key: "lastUpdated", JSON: f.now},
	}
	if !f.isBegun {
		f.isBegun = true
		origin := `{"sessionId":` + string(record.Member("sessionId")) + `}`
		fields = append(fields, rawjson.Field{Key: "forkedFrom", JSON: origin})
	}
	return rawjson.SetMembers(record.Value, fields), nil
}

// writeEnd writes the time of the fork: the client deletes a session by the last one in its log. A title is beside it.
func (f *chatFork) writeEnd(out io.Writer) error {
	title := ""
	if f.request.Title != "" {
		title = `"summary":` + rawjson.Quote(f.request.Title) + ","
	}
	_, err := fmt.Fprintf(out, `{"$set":{%s"lastUpdated":%s}}`+"\n", title, f.now)
	return err
}

// chatMessages are the messages that the client reads from a log, in order.
type chatMessages struct {
	messages []chatMessage
	places   map[string]int // by id
}

// chatMessage is one of them. isWords says that the client goes on with a session for it.
type chatMessage struct {
	id      string
	isWords bool
}

// add adds a record.
func (t *chatMessages) add(record agents.Object) {
	rewind, isRewind := record.Member("$rewindTo").Text()
	set := record.Member("$set")
	messages := set.Member("messages")
	switch {
	case isRewind:
		t.cut(t.places[rewind]) // an unknown message cuts all
	case record.Member("id").IsString():
		t.set(record)
	case messages.IsArray():
		t.cut(0)
		t.setAll(messages)
	case set.IsObject(): // facts of the session
	default:
		t.setAll(record.Member("messages"))
	}
}

// cut removes the message at an index, and those behind it.
func (t *chatMessages) cut(at int) {
	for _, m := range t.messages[at:] {
		delete(t.places, m.id)
	}
	t.messages = t.messages[:at]
}

// setAll sets the messages in a list.
func (t *chatMessages) setAll(list rawjson.Value) {
	for m := range list.EachElement {
		t.set(agents.Read(m))
	}
}

// set adds a message, or replaces the one with its id.
func (t *chatMessages) set(m agents.Object) {
	id, isMessage := m.Member("id").Text()
	if !isMessage {
		return
	}
	at, isKnown := t.places[id]
	if isKnown {
		t.messages[at].isWords = isWords(m)
		return
	}
	if t.places == nil {
		t.places = map[string]int{}
	}
	t.places[id] = len(t.messages)
	t.messages = append(t.messages, chatMessage{id: id, isWords: isWords(m)})
}

// canResume reports whether the client goes on with a log that ends here.
func (t *chatMessages) canResume() bool {
	return slices.ContainsFunc(t.messages, func(m chatMessage) bool { return m.isWords })
}

// isWords reports whether the client goes on with a session for a message: an answer, or words of the person that
// are neither a command nor words of the program.
func isWords(m agents.Object) bool {
	var all []byte
	agents.EachPart(m.Member("content"), func(part rawjson.Value) {
		words, isText := part.Member("text").Bytes()
		if !isText { // such as an image: it counts as words
			words = []byte("[part]")
		}
		all = append(all, words...)
	})
	text := strings.TrimSpace(string(all))
	typ := m.Member("type")
	switch {
	case typ.Is("user"):
		return text != "" && !startsWith(text, "/", "?", "<session_context>", "<hook_context>")
	case typ.Is("gemini"):
		return text != "" || isFilled(m.Member("toolCalls")) || isFilled(m.Member("thoughts"))
	}
	return false
}

// isFilled reports whether a value is an array with an element.
func isFilled(list rawjson.Value) bool {
	for range list.EachElement {
		return true
	}
	return false
}

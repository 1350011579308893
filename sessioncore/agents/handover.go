package agents

import (
	"io"
	"strings"
	"time"

	"sessionfs/sessioncore/internal/rawjson"
)

// Receiver is a Format of an agent that goes on from a new file with a conversation that another agent had
// (docs/format.md, Handovers to another agent).
type Receiver interface {
	Format
	// Receive writes the records of a new session to out, and returns the place of its file. The error
	// is a ForkError if the agent could not go on from such a file.
	Receive(h *Handover, out io.Writer) (ForkPlace, error)
}

// OwnIDs is a Receiver for an agent that takes ids in a form of its own alone.
type OwnIDs interface {
	Receiver
	// SessionID returns the id of a new session: always the same for a UUID and a time.
	SessionID(uuid string, at time.Time) string
}

// Receives reports whether the agent's Format is a Receiver, so that a session can be handed over to the agent.
func (a *Agent) Receives() bool {
	format, err := a.Alone(nil, nil)
	_, isReceiver := format.(Receiver)
	return err == nil && isReceiver
}

// Handover is a conversation for an agent that had no part in it: the context at an entry, as a model
// would be sent it next.
type Handover struct {
	// ID is the id of the new session, a UUID or one of OwnIDs.
	ID string
	// Title is its title, "" for none.
	Title string
	// CWD is the working directory, an absolute path without links.
	CWD string
	// Time is the time of the handover.
	Time time.Time
	// Origin is the member OriginKey of the new session's first record.
	Origin HandoverOrigin
	// EachTurn calls f for each turn in order, until an error. A turn is valid during the call.
	EachTurn func(f func(*Turn) error) error
}

// HandoverOrigin names the session of a conversation, in the words of omp's own imports.
type HandoverOrigin struct {
	Source  string `json:"source"`                // the agent's name
	ID      string `json:"sourceId"`              // of the session
	Entry   string `json:"sourceEntry,omitempty"` // its last entry that came along
	CWD     string `json:"sourceCwd,omitempty"`
	Session string `json:"session"` // the id of the new session
}

// OriginKey is the member of a record that has the origin of a handover.
const OriginKey = "handedOverFrom"

// OriginIn returns the id of the session that the session of an id was handed over from, by the record
// or payload that has the origin, or "". A fork of that session has a copy of the record.
func OriginIn(record Object, session string) string {
	origin := record.Member(OriginKey)
	if !origin.Member("session").Is(session) {
		return ""
	}
	id, _ := origin.Member("sourceId").Text()
	return id
}

// HandedEntry is the entry that a turn was in the session that it comes from. The entry in the new session has its
// id and time, so that it counts once.
type HandedEntry struct {
	ID   string `json:"id"`
	Time string `json:"timestamp"`
}

// NoVersion stands for the version of the client that wrote a handover, as none did.
const NoVersion = "0.0.0"

// EntryKey is the member with the HandedEntry of the first record of a turn.
const EntryKey = "handedOver"

// EntryIn returns the id and the time of the HandedEntry in a record, "" and nil for none.
func EntryIn(record Object) (id string, time rawjson.Value) {
	entry := record.Member(EntryKey)
	if !entry.IsObject() {
		return "", nil
	}
	id, _ = entry.Member("id").Text()
	return id, entry.Member("timestamp")
}

// Speaker is the author of a turn.
type Speaker uint8

// The speakers.
const (
	// ByUser is the person.
	ByUser Speaker = iota
	// ByProgram is a program in the person's place.
	ByProgram
	// ByModel is the model. The turns that follow are the results of its calls, in their order.
	ByModel
	// ByTool is a tool: the result of one call.
	ByTool
	// BySummary is a compaction. Only the first turn is one.
	BySummary
)

// Turn is a part of a conversation. It has a block, but for the result of a tool.
type Turn struct {
	By     Speaker
	Time   time.Time
	Blocks []TurnBlock
	// Entry is its entry, nil for a turn that none had.
	Entry *HandedEntry
	// Model is the model of an answer, "" for an unknown one.
	Model string
	// Call is the id of the call of a result, and IsError says that it failed.
	Call    string
	IsError bool
}

// TurnBlock is a text, an image or a call: the one with its member set. Only an answer has calls, and no
// answer has images.
type TurnBlock struct {
	// Text is valid UTF-8 with more than white space.
	Text string
	// Data is an image in base64, of MediaType: image/png, image/jpeg, image/gif or image/webp.
	Data, MediaType string
	// Call is the id of a call, unlike all others of the handover. It and Tool, the tool's name, have 1
	// to 64 of the characters A-Z, a-z, 0-9, _ and -.
	Call, Tool string
	// Arguments is an object on one line.
	Arguments rawjson.Value
}

// Texts returns the texts of a turn with a separator between them, "" if it has none.
func (t *Turn) Texts(separator string) string {
	var texts []string
	for i := range t.Blocks {
		text := t.Blocks[i].Text
		if text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, separator)
}

// HandoverLine returns a record of a handover, which encoding/json can encode, as a line. The error is a ForkError for one
// that is too long.
func HandoverLine(record any) ([]byte, error) {
	line := rawjson.AppendLine(nil, record)
	if len(line) > MaxForkedRecord {
		return nil, NoFork("a record of it would have %d bytes, at most %d can be written", len(line), MaxForkedRecord)
	}
	return line, nil
}

package agents

import (
	"io"
	"time"

	"sessionfs/sessioncore/internal/rawjson"
)

// Receiver is a Format whose agent goes on from a new file with a conversation that another agent had
// (docs/format.md, Handovers to another agent).
type Receiver interface {
	Format
	// Receive writes the records of a new session to out, and returns the place of its file. The error
	// is a ForkError if the agent could not go on from such a file.
	Receive(h *Handover, out io.Writer) (ForkPlace, error)
}

// Handover is a conversation for an agent that had no part in it: the context at an entry, as the model
// would be sent it next.
type Handover struct {
	// ID is the id of the new session, a UUID.
	ID string
	// Title is its title, "" for none.
	Title string
	// CWD is the working directory, an absolute path without links.
	CWD string
	// Time is the time of the handover.
	Time time.Time
	// Origin is the member originKey of the new session's first record.
	Origin HandoverOrigin
	// EachTurn calls f for each turn in order. A turn is valid during the call.
	EachTurn func(f func(*Turn) error) error
}

// HandoverOrigin says where a conversation came from, in the words of an import of omp.
type HandoverOrigin struct {
	Source string `json:"source"`                // the agent's name
	ID     string `json:"sourceId"`              // of the session
	Entry  string `json:"sourceEntry,omitempty"` // its last entry that came along
	CWD    string `json:"sourceCwd,omitempty"`
}

// OriginKey is the member of a record that has the origin of a handover.
const OriginKey = "handedOverFrom"

// OriginIn returns the id of the session from which a conversation was handed over, by the record or
// payload that has the origin, or "".
func OriginIn(record Object) string {
	id, _ := record.Member(OriginKey).Member("sourceId").Text()
	return id
}

// Speaker is the author of a turn.
type Speaker uint8

// The speakers.
const (
	// ByUser is the person, or a program in the person's place.
	ByUser Speaker = iota
	// ByModel is the model. Its calls are answered by the turns that follow, in their order.
	ByModel
	// ByTool is a tool: the result of one call.
	ByTool
	// BySummary is a compaction. Only the first turn has a summary.
	BySummary
)

// Turn is a part of a conversation. It is never empty, but for the result of a tool.
type Turn struct {
	By     Speaker
	Time   time.Time
	Blocks []TurnBlock
	// Model is the model of an answer, "" for an unknown one.
	Model string
	// Call is the id of the call of a result, and IsError says that it failed.
	Call    string
	IsError bool
}

// TurnBlock is a text, an image or a call: the one whose member is set.
type TurnBlock struct {
	Text string // valid UTF-8
	// Data is an image in base64, of MediaType: image/png, image/jpeg, image/gif or image/webp.
	Data, MediaType string
	// Call is the id of a call, unlike all others of the handover. It and Tool, the tool's name, have 1
	// to 64 of the characters A-Z, a-z, 0-9, _ and -.
	Call, Tool string
	// Arguments is an object on one line.
	Arguments rawjson.Value
}

// Texts returns the texts of a turn with empty lines between them.
func (t *Turn) Texts() string {
	all := ""
	for i := range t.Blocks {
		text := t.Blocks[i].Text
		if text == "" {
			continue
		}
		if all != "" {
			all += "\n\n"
		}
		all += text
	}
	return all
}

package view

import "sessionfs/sessioncore"

// A session is shown as a list of blocks. The writers for Markdown (markdown.go) and HTML (page.go)
// differ only in form.

// block is a part of an entry as a person reads it: a line of spans, or a text.
type block struct {
	kind kind
	line []span // of a line
	text []byte // of a text; of an image, its data as in the entry
	info string // the language of code; of a call, the argument that tells it from others

	parts  int    // of a call or a result: how many blocks behind it belong to it
	call   string // of a call: its id
	failed bool   // of a result
}

// kind is the kind of a block.
type kind uint8

const (
	titleLine     kind = iota // of the session
	headingLine               // of a turn
	namingLine                // names an entry within a turn
	noteLine                  // a label and values, which nobody said
	callLine                  // the call of a tool
	resultLine                // the call that a result answers
	paragraphLine             // any other line; its spans have their own blanks
	pictureLine               // a note of an image in the entry
	proseText                 // Markdown of the speaker
	thoughtText               // Markdown of the model's thoughts
	codeText                  // text without Markdown
)

// separators stand between the spans of a line.
var separators = [...]string{
	headingLine: " · ", namingLine: " · ", noteLine: " ", callLine: " — ", resultLine: " · ", paragraphLine: "",
	pictureLine: " ",
}

// span is a piece of a line.
type span struct {
	style  style
	text   string
	target string // of a link or name: the name of an entry; of an image: the hash of a blob
}

// style is the style of a span.
type style uint8

const (
	plainStyle style = iota
	emphasisStyle
	strongStyle
	codeStyle       // of words of the session, such as names
	strongCodeStyle // of the name of a tool
	timeStyle
	nameStyle  // of the name of the entry
	linkStyle  // of a link to the entry's file
	imageStyle // of an image in the blob store
)

// turnFlags tell how an entry belongs to a turn.
type turnFlags uint8

const (
	inTurn        turnFlags = 1 << iota // it belongs to a turn
	beginsTurn                          // it always begins a turn
	joinsTurn                           // it is the result of a tool and belongs to a preceding turn of the assistant
	fromAssistant                       // it is a message of the assistant
	fromUser                            // the user said it or ran it
	answersCall                         // it depends on asked
)

// entryBlocks is an entry as a person reads it.
type entryBlocks struct {
	flags   turnFlags
	speaker uint32            // a hash of the speaker of a turn
	asked   sessioncore.Entry // the message with the calls that its results answer, on which they depend
	heading block             // shown if a turn begins with the entry
	naming  block             // shown otherwise; without spans if the body names the entry
	body    []block           // empty if nothing of the entry is shown
}

// opening returns the block that stands before the body. It has no spans if the entry is not part
// of a turn.
func (b *entryBlocks) opening(begins bool) *block {
	if begins {
		return &b.heading
	}
	return &b.naming
}

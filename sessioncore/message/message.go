package message

import "sessionfs/sessioncore/internal/rawjson"

// Key is a member of a message, of an entry like one, or of a content block, in any spelling.
type Key uint8

// The members.
const (
	Type Key = iota
	Role
	Content
	Files
	Details
	Usage

	Provider // of an answer
	Model
	ResponseModel
	StopReason
	ErrorMessage

	ToolName // of the result of a tool
	CallID
	IsError
	NestedCalls

	Command // of a user's command
	Code
	Output
	ExitCode
	Cancelled
	Truncated
	Images
	Excluded

	CustomType // of an extension
	Display
	Attribution
	Synthetic

	Summary
	ShortSummary

	Text // of a block
	Thinking
	Data // of an image
	URL
	MediaType
	Source
	ID // of a call
	Name
	Arguments
	Intent
	To    // of a fallback
	Block // a block of a provider in this one

	count
)

// keys maps names in camelCase to members.
var keys = map[string]Key{
	"type": Type, "role": Role, "content": Content, "files": Files, "details": Details, "usage": Usage,
	"provider": Provider, "model": Model, "responseModel": ResponseModel, "stopReason": StopReason,
	"errorMessage": ErrorMessage,
	"toolName":     ToolName, "toolCallId": CallID, "toolUseId": CallID, "isError": IsError,
	"nestedCalls": NestedCalls,
	"command":     Command, "code": Code, "output": Output, "exitCode": ExitCode, "cancelled": Cancelled,
	"truncated": Truncated,
	"images":    Images, "excludeFromContext": Excluded,
	"customType": CustomType, "display": Display, "attribution": Attribution,
	"synthetic": Synthetic,
	"summary":   Summary, "shortSummary": ShortSummary,
	"text": Text, "thinking": Thinking, "reasoning": Thinking,
	"data": Data, "imageUrl": URL, "url": URL, "mimeType": MediaType, "mediaType": MediaType, "source": Source,
	"id": ID, "name": Name, "arguments": Arguments, "input": Arguments, "args": Arguments, "parameters": Arguments,
	"intent": Intent,
	"to":     To, "block": Block,
}

// Members holds the known members of a message or block, nil for missing ones.
type Members [count]rawjson.Value

// Read finds the members of a message, of an entry like one, or of a content block in one pass. Of repeated members the
// last one counts.
func Read(v rawjson.Value) (m Members) {
	for member := range v.EachMember {
		name, _ := member.Key.Bytes()
		key, isKnown := keys[string(name)]
		if !isKnown { // it may be in snake_case; most are not, and need no copy
			key, isKnown = keys[member.Name()]
		}
		if isKnown {
			m[key] = member.Value
		}
	}
	return m
}

// Role returns the role of a message in camelCase, "" for none.
func (m *Members) Role() string {
	text, _ := m[Role].Text()
	return rawjson.CamelCase(text)
}

// Kind is the kind of a content block, in the words of any dialect or provider.
type Kind uint8

// The kinds.
const (
	OtherKind Kind = iota
	TextKind
	ThinkingKind
	ImageKind
	CallKind
	ResultKind
	FallbackKind // to another model
	ServerKind   // has a block of a provider
)

var kinds = map[string]Kind{
	"text": TextKind, "inputText": TextKind, "outputText": TextKind,
	"thinking": ThinkingKind, "reasoning": ThinkingKind, "redactedThinking": ThinkingKind,
	"image": ImageKind, "imageUrl": ImageKind, "inputImage": ImageKind,
	"toolCall": CallKind, "toolUse": CallKind, "functionCall": CallKind, "serverToolUse": CallKind,
	"toolResult": ResultKind, "fallback": FallbackKind, "anthropicServerTool": ServerKind,
}

// Kind returns the kind of a block, OtherKind for one without a known type.
func (m *Members) Kind() Kind {
	text, _ := m[Type].Bytes()
	kind, isKnown := kinds[string(text)]
	if isKnown {
		return kind
	}
	return kinds[rawjson.CamelCase(string(text))]
}

// MaxDepth bounds the depth of contents in contents. A result in a message has depth 2.
const MaxDepth = 4

// EachCall calls f for each call of a tool in a message's content: a block, or a list of blocks. It looks into blocks of
// a provider, to MaxDepth.
func EachCall(content rawjson.Value, f func(*Members)) { eachCall(content, 0, f) }

// eachCall is EachCall for the content of a block at a depth.
func eachCall(content rawjson.Value, depth int, f func(*Members)) {
	check := func(v rawjson.Value) {
		b := Read(v)
		if b.Kind() == CallKind {
			f(&b)
		}
		if depth < MaxDepth {
			eachCall(b[Block], depth+1, f)
		}
	}
	if content.IsObject() {
		check(content)
	}
	for block := range content.EachElement {
		check(block)
	}
}

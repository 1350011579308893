package forks

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// blockReader makes the blocks of a turn from a message.
type blockReader struct {
	conversation *conversation
	call         int  // the number of the next call in the conversation
	isAnswer     bool // the message is an answer of the model
	blocks       []agents.TurnBlock
}

const (
	// maxImage is the size of the largest image, in bytes of base64: Anthropic's service refuses a request
	// with a larger one.
	maxImage = 5 << 20
	// maxOdd is the size of the largest block of an unknown kind, in bytes, that becomes a text as a whole.
	maxOdd = 4 << 10
)

// The beginnings of texts that name their kind.
const (
	summaryBegin = "This conversation goes on from an earlier one. Its summary:\n\n"
	branchBegin  = "Summary of another branch of this conversation:\n\n"
	firstText    = "(The beginning of this conversation is not there.)"
	lackedResult = "(No result of this call was recorded.)"
)

// addText adds a text, unless it has white space alone: services refuse empty texts.
func (r *blockReader) addText(text string) {
	if !utf8.ValidString(text) {
		text = withoutSurrogates(text)
	}
	if strings.TrimSpace(text) != "" {
		r.blocks = append(r.blocks, agents.TurnBlock{Text: text})
	}
}

// withoutSurrogates returns a text of WTF-8 with U+FFFD for each lone surrogate.
func withoutSurrogates(text string) string {
	out := make([]byte, 0, len(text))
	rest := []byte(text)
	for len(rest) > 0 {
		r, size := rawjson.DecodeRune(rest)
		out = utf8.AppendRune(out, r)
		rest = rest[size:]
	}
	return string(out)
}

// addContent adds the content of a message: a text, or blocks.
func (r *blockReader) addContent(content rawjson.Value) {
	text, isText := content.Text()
	if isText {
		r.addText(text)
	}
	for block := range content.EachElement {
		r.addBlock(block)
	}
}

// addBlock adds a block. Thinking is left out: services take it from their own models alone.
func (r *blockReader) addBlock(block rawjson.Value) {
	typ, _ := block.Member("type").Text()
	text, isText := block.Member("text").Text()
	switch {
	case typ == "thinking", typ == "redactedThinking": // left out
	case typ == "text" && isText:
		r.addText(text)
	case typ == "image":
		r.addImage(block.Member("data"))
	case typ == "toolCall" && r.isAnswer:
		r.addCall(block)
	case len(block) > maxOdd: // of an unknown kind, and too long to be read
		r.addText(fmt.Sprintf("[%s, %d bytes]", typ, len(block)))
	default:
		r.addText(string(block))
	}
}

// addCall adds the next call of the conversation. Its id and its name are such as services take.
func (r *blockReader) addCall(block rawjson.Value) {
	name, _ := block.Member("name").Text()
	call := agents.TurnBlock{
		Call:      r.conversation.calls[r.call].id,
		Tool:      toolName(name),
		Arguments: argumentsOf(block.Member("arguments")),
	}
	r.call++
	r.blocks = append(r.blocks, call)
}

// argumentsOf returns the arguments of a call as an object on one line, without lone surrogates, which
// services refuse.
func argumentsOf(v rawjson.Value) rawjson.Value {
	switch {
	case v.Missing():
		return rawjson.Value("{}")
	case !v.IsObject():
		v = append(append([]byte(`{"input":`), v...), '}')
	}
	var out bytes.Buffer
	err := json.Compact(&out, v)
	if err != nil {
		return rawjson.Value("{}")
	}
	compact := out.Bytes()
	replaceSurrogates(compact)
	return compact
}

// replaceSurrogates replaces the escapes of lone surrogates in a JSON text, in place, by the escape of
// U+FFFD, which has the same length.
func replaceSurrogates(text []byte) {
	at := 0
	for at < len(text) {
		if text[at] != '\\' {
			at++
			continue
		}
		c, size := rawjson.ReadEscape(text[at:])
		if size > 0 && utf16.IsSurrogate(c) {
			copy(text[at:], `\ufffd`)
		}
		at += max(size, len(`\n`)) // size is 0 for an escape of one letter
	}
}

// addImage adds an image, or a text in the place of one that services refuse.
func (r *blockReader) addImage(data rawjson.Value) {
	text, _ := data.Text()
	mediaType := mediaTypeOf(text)
	refusal := ""
	switch {
	case r.isAnswer:
		refusal = "it is a model's"
	case mediaType == "":
		refusal = "it is not there, or of a kind that models do not take"
	case len(text) > maxImage:
		refusal = fmt.Sprintf("it has %d bytes in base64", len(text))
	default:
		r.blocks = append(r.blocks, agents.TurnBlock{Data: text, MediaType: mediaType})
		return
	}
	r.conversation.images++
	r.addText("[An image could not be handed over: " + refusal + ".]")
}

// imageTypes are the types of images that services take.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// mediaTypeOf returns the type of an image in base64 by its first bytes, as a record may name a wrong one,
// which services refuse. It returns "" for another type, and for a text that is not base64 to its end.
func mediaTypeOf(data string) string {
	const headSize = 16 // more than the signatures of imageTypes have
	in := base64.NewDecoder(base64.StdEncoding, strings.NewReader(data))
	head := make([]byte, headSize)
	n, _ := io.ReadFull(in, head)
	_, err := io.Copy(io.Discard, in)                // finds out whether the rest is base64
	hasLineEnds := strings.ContainsAny(data, "\r\n") // which the decoder skips
	if err != nil || hasLineEnds {
		return ""
	}
	mediaType := http.DetectContentType(head[:n])
	if !slices.Contains(imageTypes, mediaType) {
		return ""
	}
	return mediaType
}

// addOther adds the content of a message of a role other than user, assistant and toolResult, and returns
// its speaker. Instructions of programs, and commands that are not sent to the model, add nothing.
func (r *blockReader) addOther(role string, message rawjson.Value) agents.Speaker {
	text := func(key string) string {
		value, _ := message.Member(key).Text()
		return value
	}
	switch role {
	case "compactionSummary", "branchSummary":
		return r.addSummary(role, text("summary"))
	case "custom", "hookMessage":
		if !agents.IsInstruction(text("customType")) {
			r.addContent(message.Member("content"))
		}
	case "bashExecution", "pythonExecution":
		if !message.Member("excludeFromContext").Truthy() {
			command := text("command") + text("code")
			r.addText("I ran this command:\n" + command + "\nIts output:\n" + text("output"))
			r.addContent(message.Member("images"))
		}
		return agents.ByUser
	case "fileMention":
		for file := range message.Member("files").EachElement {
			r.addFile(file)
		}
	}
	return agents.ByProgram // an instruction, or an unknown role
}

// addSummary adds a summary with the words that name its kind, unless it has them already or is empty. It
// returns the summary's speaker.
func (r *blockReader) addSummary(role, summary string) agents.Speaker {
	begin := branchBegin
	by := agents.ByProgram
	if role == "compactionSummary" {
		begin = summaryBegin
		by = agents.BySummary
	}
	if strings.TrimSpace(summary) == "" {
		return by
	}
	if !strings.HasPrefix(summary, begin) {
		summary = begin + summary
	}
	r.addText(summary)
	return by
}

// addFile adds a file that the person named.
func (r *blockReader) addFile(file rawjson.Value) {
	path, _ := file.Member("path").Text()
	content, _ := file.Member("content").Text()
	r.addText("The file " + path + ":\n" + content)
	image := file.Member("image")
	switch {
	case image.IsObject():
		r.addBlock(image)
	case image.IsArray():
		r.addContent(image)
	}
}

// timeOf returns the time of a message, the zero time if it has none in milliseconds since the epoch.
func timeOf(message rawjson.Value) time.Time {
	var ms float64
	err := json.Unmarshal(message.Member("timestamp"), &ms)
	const maxTime = 1 << 52 // beyond any date, and still an exact number
	if err != nil || ms <= 0 || ms > maxTime {
		return time.Time{}
	}
	return time.UnixMilli(int64(ms))
}

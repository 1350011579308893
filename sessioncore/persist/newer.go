package persist

import (
	"bytes"
	"regexp"
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
)

// This file has the size controls of omp 18 where they differ from 14.9.9 (docs/format.md, Persisting): providers
// check some blocks against signatures when they are sent back, so these stay whole, and images go into blobs in more
// places.

// newerFrame is what the newer rules know of an open array or object.
type newerFrame struct {
	edits, blobs int // how many there were before it
	typ          blockType
	has          memberSet // members whose value is a text that is not empty
	hasContent   bool
	serverTool   bool     // the member block is complete history of a provider's own tool
	content      textSpan // value of the member content, if it is a string
	result       textSpan // the same of result
	mime         textSpan // and of mimeType
}

// memberSet has a bit for each persistKey.
type memberSet uint32

func (s memberSet) with(k persistKey) memberSet    { return s | 1<<(k&31) }
func (s memberSet) without(k persistKey) memberSet { return s &^ (1 << (k & 31)) }
func (s memberSet) has(k persistKey) bool          { return s&(1<<(k&31)) != 0 }

// blockType is the type of an object that the newer rules know.
type blockType uint8

const (
	blockOther blockType = iota
	blockThinking
	blockText
	blockToolCall
	blockRedacted
	blockReasoning
	blockGeneration
	blockServerTool
	blockCompaction
	blockToolUse
	blockToolResult
)

var blockTypes = map[string]blockType{
	"thinking": blockThinking, "text": blockText, "toolCall": blockToolCall, "redactedThinking": blockRedacted,
	"reasoning": blockReasoning, "image_generation_call": blockGeneration,
	"anthropicServerTool": blockServerTool, "anthropicCompaction": blockCompaction,
	"server_tool_use": blockToolUse, "web_search_tool_result": blockToolResult, "tool_search_tool_result": blockToolResult,
}

// replayedTools are the provider's tools whose calls the client sends back as they were.
var replayedTools = map[string]bool{"web_search": true, "tool_search_tool_regex": true, "tool_search_tool_bm25": true}

// str notes the value of a member that is a string.
func (f *newerFrame) str(member persistKey, token rawjson.Value, start int) {
	span := textSpan{start, start + len(token)}
	f.has = f.has.without(member)
	if len(token) > len(`""`) {
		f.has = f.has.with(member)
	}
	switch member {
	case keyType:
		text, _ := token.Bytes()
		f.typ = blockTypes[string(text)]
	case keyName:
		if text, _ := token.Bytes(); !replayedTools[string(text)] {
			f.has = f.has.without(keyName)
		}
	case keyContent:
		f.content, f.hasContent = span, true
	case keyResult:
		f.result = span
	case keyMimeType:
		f.mime = span
	case keyBlock:
		f.serverTool = false
	}
}

// isReplayed reports whether an object is complete history of a provider's own tool.
func (f *newerFrame) isReplayed() bool {
	switch f.typ {
	case blockToolUse:
		return f.has.has(keyName) && f.has.has(keyID)
	case blockToolResult:
		return f.has.has(keyToolUseID) && f.hasContent
	}
	return false
}

// isWhole reports whether an object with this key is written as it is: a provider refuses a block whose content does
// not fit its signature, or whose encrypted part was cut.
func (f *newerFrame) isWhole(key persistKey) bool {
	if key == keyCompaction && f.content.end != 0 {
		return true
	}
	switch f.typ {
	case blockThinking:
		return f.has.has(keyThinkingSignature)
	case blockText:
		return f.has.has(keyTextSignature)
	case blockToolCall:
		return f.has.has(keyThoughtSignature)
	case blockRedacted:
		return f.has.has(keyData)
	case blockReasoning:
		return f.has.has(keyEncrypted)
	case blockServerTool:
		return f.serverTool
	case blockCompaction:
		return true
	}
	return false
}

// closeNewer makes the edits of an object that depend on several of its members.
func (p *persister) closeNewer(f *persistFrame) {
	if !f.object {
		return
	}
	n := &f.newer
	switch {
	case n.typ == blockGeneration && p.isLongImage(n.result):
		p.moveOut(f, n.result, "")
	case p.isImage(f) && p.isLongImage(f.data):
		p.moveOut(f, f.data, p.mimeOf(f))
	case n.isWhole(f.key):
		p.undo(f)
	case len(p.edits) > n.edits && n.content.end != 0 && f.lineCount.end != 0:
		lines := f.lines
		if lines == 0 {
			token := p.text[n.content.start:n.content.end]
			lines = 1 + bytes.Count(rawjson.AppendDecoded(nil, token[1:len(token)-1]), []byte{'\n'})
		}
		p.setLineCount(f, lines)
	}
	if len(p.frames) > 1 {
		if parent := &p.frames[len(p.frames)-2]; parent.object && parent.member == keyBlock {
			parent.newer.serverTool = n.isReplayed()
		}
	}
}

// isImage reports whether an object is an image in a place from which the client moves images into blobs.
func (p *persister) isImage(f *persistFrame) bool {
	return f.key == keyContent && f.image || f.key == keyImages && (f.image || strings.HasPrefix(p.mimeOf(f), "image/"))
}

// mimeOf returns the member mimeType in lower case.
func (p *persister) mimeOf(f *persistFrame) string {
	text, _ := p.text[f.newer.mime.start:f.newer.mime.end].Text()
	return strings.ToLower(text)
}

// isLongImage reports whether a string is long enough to go into a blob, and not in one yet.
func (p *persister) isLongImage(at textSpan) bool {
	if at.end == 0 {
		return false
	}
	token := p.text[at.start:at.end]
	text, _ := token.Bytes()
	return unitsOf(token[1:len(token)-1]) >= minBlob && !isReference(text)
}

// moveOut moves the string at a place in f into a blob. All else in f stays as it is.
func (p *persister) moveOut(f *persistFrame, at textSpan, mime string) {
	p.undo(f)
	if p.rules.Blobs {
		text, _ := p.text[at.start:at.end].Bytes()
		p.edits = append(p.edits, rawjson.Edit{Start: at.start, End: at.end, Text: p.blob(decodeBase64(text), imageEnding(mime))})
	}
}

// undo removes the edits within f.
func (p *persister) undo(f *persistFrame) {
	p.edits = p.edits[:f.newer.edits]
	p.blobs = p.blobs[:f.newer.blobs]
}

var (
	imageEndings = map[string]string{"image/png": "png", "image/jpeg": "jpg", "image/jpg": "jpg", "image/gif": "gif", "image/webp": "webp", "image/svg+xml": "svg"}
	plainEnding  = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,31}$`)
)

// imageEnding returns the ending of the second name that the client gives a blob with an image, so that viewers know
// what it is; "" for none. mime is in lower case.
func imageEnding(mime string) string {
	if known := imageEndings[mime]; known != "" {
		return known
	}
	subtype, ok := strings.CutPrefix(mime, "image/")
	if !ok {
		return ""
	}
	subtype, _, _ = strings.Cut(subtype, ";")
	subtype, _, _ = strings.Cut(subtype, "+")
	if subtype = strings.TrimPrefix(subtype, "."); !plainEnding.MatchString(subtype) {
		return ""
	}
	return subtype
}

package persist

import (
	"fmt"
	"strconv"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/rawjson"
)

// Line applies the size controls of docs/format.md, Persisting, to an entry's text: one pass over the tokens,
// without recursion, which collects edits. What is not edited keeps its bytes. newer.go has what omp 18 does
// otherwise than 14.9.9.

const (
	// maxPersist is the length up to which a string is kept whole, in UTF-16 code units (docs/format.md, Persisting).
	maxPersist = 500_000
	// truncationNotice is the end of a truncated string, here as JSON.
	truncationNotice = `\n\n[Session persistence truncated large content]`
	// noticeUnits and noticeBreaks are the notice's length in code units and its number of line breaks.
	noticeUnits  = len(truncationNotice) - 2
	noticeBreaks = 2
	// minBlob is the minimum length of the base64 of an image that goes into a blob, in code units (docs/format.md,
	// Persisting).
	minBlob = 1024
	// maxDepth bounds the nesting of a line. The client's own functions overflow their stack at a tenth of it; a
	// level takes about 100 bytes while the line is checked.
	maxDepth = 100_000
)

// Rules say how the client of a session writes lines.
type Rules struct {
	Blobs bool // images go into blobs, else they stay in the line whatever their length
	Newer bool // as omp 18 does, else as omp 14.9.9
}

// persistKey classifies a member's key for the size controls.
type persistKey uint8

const (
	keyOther persistKey = iota
	keyContent
	keyImageURL
	keyThinkingSignature
	keyThoughtSignature
	keyTextSignature
	keyPartialJSON
	keyEvents
	keyType
	keyData
	keyLineCount
	keyImages
	keyMimeType
	keyResult
	keyName
	keyID
	keyToolUseID
	keyEncrypted
	keyBlock
	keyCompaction
)

var persistKeys = map[string]persistKey{
	"content": keyContent, "image_url": keyImageURL, "type": keyType, "data": keyData, "lineCount": keyLineCount,
	"thinkingSignature": keyThinkingSignature, "thoughtSignature": keyThoughtSignature, "textSignature": keyTextSignature,
	"partialJson": keyPartialJSON, "jsonlEvents": keyEvents,
	"images": keyImages, "frames": keyImages, "mimeType": keyMimeType, "result": keyResult,
	"name": keyName, "id": keyID, "tool_use_id": keyToolUseID, "encrypted_content": keyEncrypted,
	"block": keyBlock, "anthropicCompaction": keyCompaction,
}

func persistKeyOf(key rawjson.Value) persistKey {
	name, _ := key.Bytes()
	return persistKeys[string(name)]
}

// isSignature reports whether the client checks a member's text against the content of its block.
func (k persistKey) isSignature() bool {
	return k == keyThinkingSignature || k == keyThoughtSignature || k == keyTextSignature
}

// isTransient reports whether a member with this key is not written.
func (r Rules) isTransient(k persistKey) bool {
	return k == keyEvents || k == keyPartialJSON && !r.Newer
}

// textSpan is the range [start, end) of a text; the zero value means none.
type textSpan struct{ start, end int }

// persistFrame is an open array or object.
type persistFrame struct {
	object bool
	key    persistKey // key of the container; an array's elements inherit it, as in the client
	inList bool       // an object in an array with the key content: possibly an image
	member persistKey // for an object: key of the current member

	kept    bool // an earlier member was kept
	prevEnd int  // end of the previous member
	dropAt  int  // start of dropped members that no kept one precedes; -1 if none

	image     bool     // the member type is "image"
	data      textSpan // value of the member data, if it is a string
	dataEdit  int      // index of its edit, -1 if none
	lines     int      // lines of the member content, if it was truncated
	lineCount textSpan // value of the member lineCount, if it is a number

	newer newerFrame
}

// Result is an entry's text after the size controls, and the blobs that it refers to.
type Result struct {
	Text  rawjson.Value
	Blobs []Blob
}

// Blob is what a line refers to.
type Blob struct {
	Data   []byte
	Ending string // of its second name, such as png; "" for none
}

// persister collects what the size controls change.
type persister struct {
	text   rawjson.Value
	rules  Rules
	scan   rawjson.Scanner
	edits  rawjson.Edits
	blobs  []Blob
	frames []persistFrame
}

// Line applies the size controls to a valid object. Invalid UTF-8 becomes U+FFFD, as readers would decode it.
func Line(text rawjson.Value, rules Rules) (Result, error) {
	if rules.Newer {
		text = withoutReplayed(text)
	}
	p := persister{text: text, rules: rules}
	if err := p.walk(); err != nil {
		return Result{}, err
	}
	if rawjson.ValidPrefix(text) != len(text) {
		p.edits = document.IllFormedEdits(p.edits, text, 0)
	}
	if len(p.edits) > 0 {
		text = p.edits.Apply(text)
	}
	return Result{text, p.blobs}, nil
}

// walk visits the tokens. The text is valid, so that only its structure matters.
func (p *persister) walk() error {
	for i := rawjson.SkipSpace(p.text, 0); i < len(p.text); i = rawjson.SkipSpace(p.text, i) {
		switch c := p.text[i]; c {
		case '{', '[':
			if err := p.open(i, c == '{'); err != nil {
				return err
			}
			i++
		case '}', ']':
			i++
			p.close()
			p.valueEnds(i)
		case ',':
			i++
		case '"':
			if p.atKey() {
				i = p.key(i)
				break
			}
			end, _ := p.scan.SkipString(p.text, i+1)
			p.str(i, end)
			p.valueEnds(end)
			i = end
		default:
			end, _ := p.scan.SkipValue(p.text, i)
			p.scalar(i, end)
			p.valueEnds(end)
			i = end
		}
	}
	return nil
}

// inside returns the innermost open container, or an empty frame.
func (p *persister) inside() *persistFrame {
	if len(p.frames) == 0 {
		return &persistFrame{}
	}
	return &p.frames[len(p.frames)-1]
}

// valueKey returns the key of the current value.
func (p *persister) valueKey() persistKey {
	f := p.inside()
	if f.object {
		return f.member
	}
	return f.key
}

// noMember means that the next string in an object is a key.
const noMember persistKey = 255

func (p *persister) atKey() bool {
	f := p.inside()
	return f.object && f.member == noMember
}

func (p *persister) open(i int, object bool) error {
	p.scalar(i, i+1) // as a value of its parent: neither string nor number
	if len(p.frames) >= maxDepth {
		return fmt.Errorf("%w: expected no more than %d levels of arrays and objects", sessioncore.ErrInvalid, maxDepth)
	}
	f := persistFrame{object: object, key: p.valueKey(), dropAt: -1, dataEdit: -1}
	f.newer.edits, f.newer.blobs = len(p.edits), len(p.blobs)
	if object {
		f.inList = len(p.frames) > 0 && !p.inside().object && f.key == keyContent
		f.member = noMember
	}
	p.frames = append(p.frames, f)
	return nil
}

// key handles the key at i and returns where its value begins or, for a dropped member, where that ends.
func (p *persister) key(i int) int {
	f := p.inside()
	end, _ := p.scan.SkipString(p.text, i+1)
	key := persistKeyOf(p.text[i:end])
	at := rawjson.SkipSpace(p.text, end)
	at = rawjson.SkipSpace(p.text, at+1) // skip the colon
	if !p.rules.isTransient(key) {
		if f.dropAt >= 0 {
			p.edits = append(p.edits, rawjson.Edit{Start: f.dropAt, End: i})
			f.dropAt = -1
		}
		f.member = key
		return at
	}
	end, _ = p.scan.SkipValue(p.text, at)
	switch {
	case f.kept:
		p.edits = append(p.edits, rawjson.Edit{Start: f.prevEnd, End: end})
	case f.dropAt < 0:
		f.dropAt = i
	}
	f.prevEnd = end
	return end
}

// valueEnds records the end of a kept member.
func (p *persister) valueEnds(end int) {
	if f := p.inside(); f.object {
		f.kept, f.prevEnd, f.member = true, end, noMember
	}
}

// close closes a container and makes the edits that depend on several members.
func (p *persister) close() {
	f := p.inside()
	if f.dropAt >= 0 {
		p.edits = append(p.edits, rawjson.Edit{Start: f.dropAt, End: f.prevEnd})
	}
	if p.rules.Newer {
		p.closeNewer(f)
	} else {
		if f.inList && f.image && f.data.end != 0 {
			p.image(f)
		}
		if f.lines > 0 && f.lineCount.end != 0 {
			p.setLineCount(f, f.lines)
		}
	}
	p.frames = p.frames[:len(p.frames)-1]
}

func (p *persister) setLineCount(f *persistFrame, lines int) {
	p.edits = append(p.edits, rawjson.Edit{Start: f.lineCount.start, End: f.lineCount.end, Text: strconv.Itoa(lines)})
}

// scalar handles a value that is not a string.
func (p *persister) scalar(start, end int) {
	f := p.inside()
	if !f.object {
		return
	}
	f.newer.has = f.newer.has.without(f.member)
	switch f.member { // of repeated keys the last one counts
	case keyType:
		f.image, f.newer.typ = false, blockOther
	case keyData:
		f.data = textSpan{}
	case keyContent:
		f.lines, f.newer.content = 0, textSpan{}
		f.newer.hasContent = true
	case keyBlock:
		f.newer.serverTool = false
	case keyLineCount:
		f.lineCount = textSpan{}
		if p.text[start:end].IsNumber() {
			f.lineCount = textSpan{start, end}
		}
	}
}

// str handles a string value.
func (p *persister) str(start, end int) {
	token := p.text[start:end]
	edits := len(p.edits)
	body, lines := p.shorten(start, token, p.valueKey())
	if body != nil {
		p.edits = append(p.edits, *body)
	}
	f := p.inside()
	if !f.object {
		return
	}
	f.newer.str(f.member, token, start)
	switch f.member {
	case keyType:
		f.image = token.Is("image")
	case keyData:
		f.data, f.dataEdit = textSpan{start, end}, -1
		if body != nil {
			f.dataEdit = edits
		}
	case keyContent:
		f.lines = lines
	case keyLineCount:
		f.lineCount = textSpan{}
	}
}

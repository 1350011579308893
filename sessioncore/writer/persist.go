package writer

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/names"
)

const (
	// maxPersist is the maximum length of an uncut string, in UTF-16 code units.
	maxPersist = 500_000
	// truncationNotice is the end of a truncated string, here as JSON.
	truncationNotice = `\n\n[Session persistence truncated large content]`
	// noticeUnits and noticeBreaks are the notice's numbers of code units and line breaks.
	noticeUnits  = len(truncationNotice) - 2
	noticeBreaks = 2
	// minBlob is the minimum length of an image's base64 for a blob, in code units.
	minBlob = 1024
	// maxDepth bounds the nesting of a line. A level takes about a kilobyte of stack here, and the
	// client's own functions overflow at about as many levels.
	maxDepth = 10_000
)

// PersistRules select how lines are written.
type PersistRules struct {
	Blobs bool // put images into blobs; otherwise they stay in the line, whatever their length
	Newer bool // write as omp 18, not as omp 14.9.9
	Whole bool // cut no string
}

// Persisted is an entry's text after the size controls, and the blobs that it refers to.
type Persisted struct {
	Text  rawjson.Value
	Blobs []BlobReference
}

// BlobReference is a blob that a line refers to.
type BlobReference struct {
	Data   []byte
	Ending string // of its second name, such as png; "" for none
}

// Persist applies the size controls of docs/format.md, Persisting, to a valid entry. All other bytes
// stay, except invalid UTF-8, which becomes U+FFFD, as readers would decode it. It does not change text
// itself. The error wraps sessioncore.ErrInvalid: the entry is nested deeper than maxDepth.
func Persist(text rawjson.Value, rules PersistRules) (Persisted, error) {
	if rules.Newer {
		text = withoutReplayed(text)
	}
	p := persister{text: text, rules: rules}
	start := rawjson.SkipSpace(text, 0)
	_, st := p.value(start, nesting{})
	if st != rawjson.OK {
		const format = "%w: expected no more than %d levels of arrays and objects"
		return Persisted{}, fmt.Errorf(format, sessioncore.ErrInvalid, maxDepth)
	}
	if rawjson.ValidPrefix(text) != len(text) {
		p.edits = document.IllFormedEdits(p.edits, text, 0)
	}
	if len(p.edits) > 0 {
		text = p.edits.Apply(text)
	}
	return Persisted{Text: text, Blobs: p.blobs}, nil
}

// persister collects the changes of the size controls in one pass over the text.
type persister struct {
	text  rawjson.Value
	rules PersistRules
	scan  rawjson.Scanner
	edits rawjson.Edits // an edit that covers an earlier one replaces it
	blobs []BlobReference
}

// nesting is the position of a value in the nesting of a text.
type nesting struct {
	key      string // of its member or, as in the client, of the array around it; "" for irrelevant keys
	isListed bool   // it is in an array
	depth    int    // number of arrays and objects around it
}

// replace adds the edit that replaces a part of the text.
func (p *persister) replace(part rawjson.Value, by string) {
	at := part.OffsetIn(p.text)
	p.edits = append(p.edits, rawjson.TextEdit{
		Start: at,
		End:   at + len(part),
		Text:  by,
	})
}

// value visits the value at offset i and returns the offset after it. The status is Bad if it is nested
// too deeply.
func (p *persister) value(i int, in nesting) (end int, st rawjson.ScanStatus) {
	first := p.text[i]
	isContainer := first == '{' || first == '['
	if isContainer && in.depth == maxDepth {
		return i, rawjson.Bad
	}
	switch first {
	case '{':
		return p.object(i, in)
	case '[':
		return p.array(i, in)
	}
	end, st = p.scan.SkipValue(p.text, i)
	v := p.text[i:end]
	if v.IsString() {
		p.str(v, in.key)
	}
	return end, st
}

// array visits the elements of the array at offset i and returns the offset after it.
func (p *persister) array(i int, in nesting) (end int, st rawjson.ScanStatus) {
	element := nesting{
		key:      in.key,
		isListed: true,
		depth:    in.depth + 1,
	}
	i = rawjson.SkipSpace(p.text, i+1)
	for p.text[i] != ']' {
		i, st = p.value(i, element)
		if st != rawjson.OK {
			return i, st
		}
		i = rawjson.SkipSpace(p.text, i)
		if p.text[i] == ',' {
			i = rawjson.SkipSpace(p.text, i+1)
		}
	}
	return i + 1, rawjson.OK
}

// str cuts a string that is too long, by the rule for its key.
func (p *persister) str(v rawjson.Value, key string) {
	if key == "image_url" && isImageURL(v) {
		if p.rules.Blobs { // otherwise keep it: a truncated image is useless
			text, _ := v.Text()
			url := names.TextUTF8(text)
			p.replace(v, p.blob([]byte(url), ""))
		}
		return
	}
	end, isLong := cutUnits(v[1 : len(v)-1])
	if !isLong || p.rules.Whole {
		return
	}
	switch key {
	case "thinkingSignature", "thoughtSignature", "textSignature":
		if !p.rules.Newer { // the client checks it against the content of its block
			p.replace(v, `""`)
		}
	default:
		p.replace(v[1+end:len(v)-1], truncationNotice)
	}
}

// isImageURL reports whether a string is an image in base64, as a URL.
func isImageURL(v rawjson.Value) bool {
	text, _ := v.Bytes()
	return bytes.HasPrefix(text, []byte("data:image/")) && bytes.Contains(text, []byte(";base64,"))
}

// objectSizes is the facts about an object for the size controls.
type objectSizes struct {
	nesting
	members []member // with the relevant keys
	edits   int      // number of edits before it
	blobs   int      // number of blobs before it
}

type member struct {
	key   string
	value rawjson.Value
}

// keys are the relevant keys; all others are "".
var keys = map[string]string{
	"type": "type", "content": "content", "lineCount": "lineCount", "data": "data", "mimeType": "mimeType",
	"result": "result", "block": "block", "image_url": "image_url", "images": "images", "frames": "frames",
	"thinkingSignature": "thinkingSignature", "thoughtSignature": "thoughtSignature",
	"textSignature": "textSignature", "encrypted_content": "encrypted_content", compaction: compaction,
}

const compaction = "anthropicCompaction" // the type of a block, and a key

// get returns the value of a member, the last one of repeated members; nil if there is none.
func (o *objectSizes) get(key string) (v rawjson.Value) {
	for _, m := range o.members {
		if m.key == key {
			v = m.value
		}
	}
	return v
}

// drops reports whether a member is dropped, by its key without quotes.
func (r PersistRules) drops(key []byte) bool {
	switch string(key) {
	case "jsonlEvents":
		return true
	case "partialJson":
		return !r.Newer
	}
	return false
}

// object visits the members of the object at offset i and returns the offset after it. Edits that
// depend on several members come last, as they may replace those of the members.
func (p *persister) object(i int, in nesting) (end int, st rawjson.ScanStatus) {
	o := objectSizes{
		nesting: in,
		edits:   len(p.edits),
		blobs:   len(p.blobs),
	}
	hasDropped := false
	end, st = p.scan.ScanMembers(p.text, i, func(quoted []byte, at int) (int, rawjson.ScanStatus) {
		name := quoted[1 : len(quoted)-1]
		if p.rules.drops(name) {
			hasDropped = true
			return p.scan.SkipValue(p.text, at)
		}
		key := keys[string(name)]
		end, st := p.value(at, nesting{key: key, depth: in.depth + 1})
		if key != "" {
			o.members = append(o.members, member{key: key, value: p.text[at:end]})
		}
		return end, st
	})
	if st != rawjson.OK {
		return end, st
	}
	if hasDropped {
		p.edits = p.edits.Object(p.text[i:end], i, "", func(m rawjson.Member) bool {
			name, _ := m.Key.Bytes()
			return p.rules.drops(name)
		})
	}
	if p.rules.Newer {
		p.finishNewer(&o)
	} else {
		p.finish(&o)
	}
	return end, st
}

// finish makes the edits of an object that depend on several of its members.
func (p *persister) finish(o *objectSizes) {
	data := o.get("data")
	content := o.get("content")
	isImage := o.key == "content" && o.isListed && o.get("type").Is("image")
	if isImage && isLongImage(data) {
		kept := string(data) // undoes a cut, as a truncated image is useless
		if p.rules.Blobs {
			kept = p.image(data, "")
		}
		p.replace(data, kept)
	}
	if content.IsString() {
		_, isCut := cutUnits(content[1 : len(content)-1])
		if isCut {
			p.countLines(o)
		}
	}
}

// countLines corrects the number of lines beside a content, as it is after a cut. It does nothing
// without both members.
func (p *persister) countLines(o *objectSizes) {
	content := o.get("content")
	count := o.get("lineCount")
	if !content.IsString() || !count.IsNumber() {
		return
	}
	body := content[1 : len(content)-1]
	lines := 1
	end, isCut := cutUnits(body)
	if isCut {
		body = body[:end]
		lines += noticeBreaks
	}
	text := rawjson.AppendDecoded(nil, body)
	lines += bytes.Count(text, []byte{'\n'})
	p.replace(count, strconv.Itoa(lines))
}

// finishNewer is finish for omp 18 (docs/format.md, Persisting): blocks that providers check
// against signatures stay unchanged, and images go into blobs in more places.
func (p *persister) finishNewer(o *objectSizes) {
	mime, _ := o.get("mimeType").Text()
	mime = strings.ToLower(mime)
	data := o.get("data")
	result := o.get("result")
	switch {
	case o.get("type").Is("image_generation_call") && isLongImage(result):
		p.moveOut(o, result, "")
	case o.hasImage(mime) && isLongImage(data):
		p.moveOut(o, data, mime)
	case o.isSealed():
		p.undo(o)
	case len(p.edits) > o.edits: // something in the object was changed
		p.countLines(o)
	}
}

// hasImage reports whether an object is an image in a place that keeps images in blobs. mime is its
// type in lower case, "" for none.
func (o *objectSizes) hasImage(mime string) bool {
	isImage := o.get("type").Is("image")
	switch o.key {
	case "content":
		return isImage
	case "images", "frames":
		return isImage || strings.HasPrefix(mime, "image/")
	}
	return false
}

// sealedBy maps the type of a block to the member that, if it is not empty, seals the block.
var sealedBy = map[string]string{
	"thinking":         "thinkingSignature",
	"text":             "textSignature",
	"toolCall":         "thoughtSignature",
	"redactedThinking": "data",
	"reasoning":        "encrypted_content",
}

// isSealed reports whether an object must stay unchanged: a provider refuses a block with another
// content than its signature's, or with an encrypted part that was cut.
func (o *objectSizes) isSealed() bool {
	if o.key == compaction && o.get("content").IsString() {
		return true
	}
	typ, _ := o.get("type").Text()
	switch typ {
	case compaction:
		return true
	case "anthropicServerTool":
		return isReplayed(o.get("block"))
	default:
		return isFilled(o.get(sealedBy[typ]))
	}
}

// isFilled reports whether a value is a string that is not empty.
func isFilled(v rawjson.Value) bool { return v.IsString() && len(v) > len(`""`) }

// isReplayed reports whether a block is history of a provider's tool that the client sends back.
func isReplayed(block rawjson.Value) bool {
	typ, _ := block.Member("type").Text()
	switch typ {
	case "server_tool_use":
		tool, _ := block.Member("name").Text()
		isSearch := tool == "web_search" || tool == "tool_search_tool_regex" || tool == "tool_search_tool_bm25"
		return isSearch && isFilled(block.Member("id"))
	case "web_search_tool_result", "tool_search_tool_result":
		return isFilled(block.Member("tool_use_id")) && block.Member("content") != nil
	}
	return false
}

// moveOut moves an image in o into a blob. The rest of o stays unchanged.
func (p *persister) moveOut(o *objectSizes, image rawjson.Value, mime string) {
	p.undo(o)
	if p.rules.Blobs {
		p.replace(image, p.image(image, imageEnding(mime)))
	}
}

// undo removes the edits and blobs of everything in an object.
func (p *persister) undo(o *objectSizes) {
	p.edits = p.edits[:o.edits]
	p.blobs = p.blobs[:o.blobs]
}

// withoutReplayed removes the thinking signatures of an assistant that repeat items of its provider
// payload, which omp 18 sends back (docs/format.md, Persisting).
func withoutReplayed(text rawjson.Value) rawjson.Value {
	const key = "thinkingSignature"
	message := text.Member("message")
	payload := message.Member("providerPayload")
	isAnswer := text.Member("type").Is("message") && message.Member("role").Is("assistant")
	if !isAnswer || !payload.Member("type").Is("openaiResponsesHistory") {
		return text
	}
	replayed := map[string]bool{}
	for item := range payload.Member("items").EachElement {
		for _, name := range namesOfItem(item) {
			replayed[name] = true
		}
	}
	var edits rawjson.Edits
	hasKey := func(m rawjson.Member) bool { return m.KeyIs(key) }
	for block := range message.Member("content").EachElement {
		if !block.Member("type").Is("thinking") {
			continue
		}
		signature, _ := block.Member(key).Text()
		item := rawjson.Value(strings.Trim(signature, " \t\r\n"))
		names := namesOfItem(item)
		isRepeated := len(names) > 0 && replayed[names[0]] // the surest name counts
		if isRepeated {
			edits = edits.Object(block, block.OffsetIn(text), "", hasKey)
		}
	}
	if len(edits) > 0 {
		text = edits.Apply(text)
	}
	return text
}

// namesOfItem returns the names of a reasoning item, the surest one first: its encrypted content and its
// id, each with its key. There are none for other items and for invalid JSON.
func namesOfItem(item rawjson.Value) (names []string) {
	if !rawjson.IsValidObject(item) || !item.Member("type").Is("reasoning") {
		return nil
	}
	for _, key := range []string{"encrypted_content", "id"} {
		text, _ := item.Member(key).Text()
		if text != "" {
			names = append(names, key+" "+text)
		}
	}
	return names
}

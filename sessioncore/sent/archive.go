package sent

import (
	"fmt"
	"strconv"
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
)

// A compaction may have an archive: the history before it as text, the middle of it drawn on images (frames). The
// client sends it behind the summary: the oldest text, the images, the newest text.

const (
	// frameBudget is how many bytes of base64 of frames the client sends at most, the newest ones.
	frameBudget = 3_000_000
	// From these sizes on it sends no frames of archives that an old version made, which made it crash.
	oldFrames, oldText, oldTruncated = 16, 250_000, 1_000_000
	// truncatedEnd ends a string that was cut when it was persisted.
	truncatedEnd = "[Session persistence truncated large content]"
)

// archive is what of an archive is sent.
type archive struct {
	frames           []rawjson.Value
	text, head, tail string
	truncated        float64 // how many characters were left out of it
	old              bool    // a frame is of an old version
}

// archiveOf returns the archive of a compaction. ok is false if it has none.
func archiveOf(text rawjson.Value) (a archive, ok bool) {
	v := text.Member("preserveData").Member("snapcompact")
	if !v.IsObject() && !v.IsArray() {
		return a, false
	}
	a.text, _ = v.Member("text").Text()
	a.head, _ = v.Member("textHead").Text()
	a.tail, _ = v.Member("textTail").Text()
	a.truncated = number(v.Member("truncatedChars"))
	cut := false
	for _, frame := range elements(v.Member("frames")) {
		data := frame.Member("data")
		if data.IsString() && data.Truthy() && frame.Member("mimeType").IsString() && frame.Member("cols").IsNumber() &&
			frame.Member("rows").IsNumber() && frame.Member("chars").IsNumber() {
			a.frames = append(a.frames, frame)
			a.old = a.old || frame.Member("font") == nil && frame.Member("variant") == nil
			cut = cut || isCut(frame)
		}
	}
	if cut {
		a.mend()
	}
	return a, len(a.frames) > 0 || a.text != "" || a.head != "" || a.tail != ""
}

func isCut(frame rawjson.Value) bool {
	text, _ := frame.Member("data").Text()
	return strings.HasSuffix(text, truncatedEnd)
}

// mend replaces frames that were cut when they were persisted by the text that they were drawn of.
func (a *archive) mend() {
	if a.text != "" {
		a.frames, a.head, a.tail = nil, a.text, ""
		return
	}
	whole := a.frames[:0]
	for _, frame := range a.frames {
		if !isCut(frame) {
			whole = append(whole, frame)
		}
	}
	a.frames = whole
}

// slot is what is sent for a frame: the frame, a note that it is missing, or one that there was no room for it.
type slot struct {
	sent    bool
	missing bool
	omitted int64 // its size in bytes
}

// slotsOf returns what is sent for each frame.
func (b *builder) slotsOf(a *archive) []slot {
	sizes := make([]int64, len(a.frames))
	all := int64(0)
	for i, frame := range a.frames {
		data := frame.Member("data")
		if size, ok := b.resolver.ImageSize(data); ok {
			sizes[i] = size
		} else if text, _ := data.Text(); strings.HasPrefix(text, rawjson.BlobPrefix) {
			sizes[i] = -1
		} else {
			sizes[i] = int64(utf16Len(text))
		}
		if sizes[i] < 0 {
			text, _ := data.Text()
			all += int64(utf16Len(text))
		} else {
			all += sizes[i]
		}
	}
	budget := int64(frameBudget)
	source := a.text
	if source == "" {
		source = a.head + a.tail
		if a.head != "" && a.tail != "" {
			source += "\n"
		}
	}
	if a.old && (len(a.frames) >= oldFrames || all >= frameBudget) &&
		(len(a.frames) >= oldFrames || a.truncated >= oldTruncated || utf16Len(plainText(source)) >= oldText) {
		budget = 0
	}
	slots := make([]slot, len(a.frames))
	for i := len(a.frames) - 1; i >= 0; i-- {
		switch {
		case sizes[i] < 0:
			slots[i].missing = true
		case sizes[i] > budget:
			slots[i].omitted = sizes[i]
		default:
			budget -= sizes[i]
			slots[i].sent = true
		}
	}
	return slots
}

// frameEdits adds the edits that resolve the frames that are sent.
func (b *builder) frameEdits(edits rawjson.Edits, text rawjson.Value) rawjson.Edits {
	a, _ := archiveOf(text)
	for i, frame := range a.frames {
		data := frame.Member("data")
		if !b.slots[i].sent {
			continue
		}
		if e, ok := b.resolver.Image(data, data.OffsetIn(text)); ok {
			edits = append(edits, e)
		}
	}
	return edits
}

func utf16Len(text string) (n int) {
	for b := []byte(text); len(b) > 0; n++ {
		r, size := rawjson.DecodeRune(b)
		if r >= 0x10000 {
			n++
		}
		b = b[size:]
	}
	return n
}

// archived returns the content of the summary of a compaction that has an archive.
func (b *builder) archived(text rawjson.Value, a *archive) (rawjson.Value, error) {
	middle, images, notes := frameBlocks(b.slots, a.frames)
	head, tail := plainText(a.head), plainText(a.tail)
	if all := strings.ToLower(head + tail); strings.Contains(all, ";base64,") {
		return nil, fmt.Errorf("%w: an archive with a data URL in it", ErrUnsupported)
	}
	content := []rawjson.Value{textBlock(text.Member("summary").AsKey())}
	last, isText := "", false // the last block of the archive, if that is text
	flush := func() {
		if isText {
			content = append(content, textBlock(last))
			last, isText = "", false
		}
	}
	if a.head != "" {
		if last, isText = head, true; images {
			last += "\n-------------- imaged middle below\n"
		}
	}
	for _, block := range middle {
		flush()
		if block.note != "" {
			last, isText = block.note, true
		} else {
			content = append(content, block.image)
		}
	}
	if a.tail != "" {
		switch {
		case images:
			tail = "-------------- imaged middle above\n" + tail
		case a.truncated > 0 || notes:
			tail = "\n-------------- middle history omitted above\n" + tail
		}
		last, isText = last+tail, true
	}
	if flush(); len(content) == 1 {
		return list(compactionBlock(text)), nil
	}
	return list(content...), nil
}

// middleBlock is an image, or a note in the place of some.
type middleBlock struct {
	image rawjson.Value
	note  string
}

func frameBlocks(slots []slot, frames []rawjson.Value) (blocks []middleBlock, images, notes bool) {
	for i := 0; i < len(slots); {
		if slots[i].sent {
			blocks, images = append(blocks, middleBlock{image: imageOf(frames[i])}), true
			i++
			continue
		}
		missing, count, bytes := slots[i].missing, 0, int64(0)
		for ; i < len(slots) && !slots[i].sent && slots[i].missing == missing; i++ {
			count++
			bytes += slots[i].omitted
		}
		notes = true
		blocks = append(blocks, middleBlock{note: gapNote(missing, count, bytes)})
	}
	return blocks, images, notes
}

// imageOf returns the image block of a frame.
func imageOf(frame rawjson.Value) rawjson.Value {
	var o object
	o.text("type", "image")
	o.raw("data", frame.Member("data"))
	o.raw("mimeType", frame.Member("mimeType"))
	if detail := frame.Member("detail"); detail.Truthy() {
		o.raw("detail", detail)
	}
	return o.end()
}

// gapNote says which frames are not there.
func gapNote(missing bool, count int, bytes int64) string {
	frames := "s"
	if count == 1 {
		frames = ""
	}
	n := grouped(float64(count))
	if missing {
		return "-------------- " + n + " archived image frame" + frames + " unavailable here --------------"
	}
	var budget string
	switch {
	case bytes >= 1_000_000:
		budget = strconv.FormatFloat(float64(bytes)/1_000_000, 'f', 1, 64) + " MB"
	case bytes >= 1_000:
		budget = strconv.FormatFloat(float64(bytes)/1_000, 'f', 1, 64) + " KB"
	default:
		budget = strconv.FormatInt(bytes, 10) + " B"
	}
	if bytes > 0 {
		budget = " " + budget + " of base64 exceeded the per-request snapcompact payload budget."
	} else {
		budget = ""
	}
	return "-------------- snapcompact image middle omitted\n" + n + " archived image frame" + frames + " could not be included." + budget +
		" The compacted summary and visible text edges remain available.\n--------------"
}

// plainText returns text of an archive without what marks it for drawing.
func plainText(text string) string {
	return strings.NewReplacer("\x0e", "", "\x0f", "", "\u2588", "\n").Replace(text)
}

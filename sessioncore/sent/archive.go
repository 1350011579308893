package sent

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sessionfs/sessioncore/document"
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

// frame is an image of an archive: one that is sent, one that is missing, or one that there was no room for.
type frame struct {
	rawjson.Value
	missing, sent bool
	size          int64 // in bytes of base64
}

// frameOf returns a frame. ok is false if it is none.
func (b *builder) frameOf(v rawjson.Value) (f frame, ok bool) {
	data := v.Member("data")
	text, _ := data.Text()
	if text == "" || !v.Member("mimeType").IsString() || !v.Member("cols").IsNumber() || !v.Member("rows").IsNumber() || !v.Member("chars").IsNumber() {
		return f, false
	}
	f = frame{Value: v, size: int64(utf16Len(text)), missing: strings.HasPrefix(text, rawjson.BlobPrefix)}
	if hash, ok := document.BlobHash(data); ok && b.blobs == nil {
		f.missing = false
	} else if ok {
		if size, err := b.blobs.Size(hash); err == nil {
			f.size, f.missing = int64(base64.StdEncoding.EncodedLen(int(size))), false
		}
	}
	return f, true
}

func (f frame) isCut() bool {
	text, _ := f.Member("data").Text()
	return strings.HasSuffix(text, truncatedEnd)
}

// compacted returns the content of the summary of a compaction, with its archive if it has one.
func (b *builder) compacted(text rawjson.Value) (rawjson.Value, error) {
	archive := text.Member("preserveData").Member("snapcompact")
	whole, _ := archive.Member("text").Text()
	head, _ := archive.Member("textHead").Text()
	tail, _ := archive.Member("textTail").Text()
	var frames []frame
	for _, v := range elements(archive.Member("frames")) {
		if f, ok := b.frameOf(v); ok {
			frames = append(frames, f)
		}
	}
	old := slices.ContainsFunc(frames, func(f frame) bool { return f.Member("font") == nil && f.Member("variant") == nil })
	if slices.ContainsFunc(frames, frame.isCut) { // they give way to the text that they were drawn of
		if whole != "" {
			frames, head, tail = nil, whole, ""
		} else {
			frames = slices.DeleteFunc(frames, frame.isCut)
		}
	}
	truncated := number(archive.Member("truncatedChars"))
	source := head + tail
	if head != "" && tail != "" {
		source = head + "\n" + tail
	}
	long := truncated >= oldTruncated || utf16Len(plainText(cmp.Or(whole, source))) >= oldText
	chooseFrames(frames, old, long)
	hasHead, hasTail := head != "", tail != ""
	head, tail = plainText(head), plainText(tail)
	if strings.Contains(strings.ToLower(head+tail), ";base64,") {
		return nil, fmt.Errorf("%w: an archive with a data URL in it", ErrUnsupported)
	}

	content := []rawjson.Value{rawSummary(text)}
	last, isText := "", false // the last block of the archive, if that is text
	flush := func() {
		if isText {
			content = append(content, textBlock(last))
			isText = false
		}
	}
	images := slices.ContainsFunc(frames, func(f frame) bool { return f.sent })
	if hasHead {
		if last, isText = head, true; images {
			last += "\n-------------- imaged middle below\n"
		}
	}
	notes := false
	for i := 0; i < len(frames); i++ {
		flush()
		if frames[i].sent {
			content = append(content, b.imageOf(frames[i]))
			continue
		}
		missing, count, bytes := frames[i].missing, 1, frames[i].size
		for ; i+1 < len(frames) && !frames[i+1].sent && frames[i+1].missing == missing; i++ {
			count, bytes = count+1, bytes+frames[i+1].size
		}
		last, isText, notes = gapNote(missing, count, bytes), true, true
	}
	if hasTail {
		switch {
		case images:
			tail = "-------------- imaged middle above\n" + tail
		case truncated > 0 || notes:
			tail = "\n-------------- middle history omitted above\n" + tail
		}
		if !isText {
			last, isText = "", true
		}
		last += tail
	}
	if flush(); len(content) == 1 {
		return list(compactionBlock(text)), nil
	}
	return list(content...), nil
}

// chooseFrames chooses the frames that are sent. old says that an old version made some, and long that the text that they were
// drawn of is.
func chooseFrames(frames []frame, old, long bool) {
	all, budget := int64(0), int64(frameBudget)
	for _, f := range frames {
		all += f.size
	}
	if old && (len(frames) >= oldFrames || all >= frameBudget && long) {
		budget = 0
	}
	for i := range slices.Backward(frames) {
		if f := &frames[i]; !f.missing && f.size <= budget {
			budget -= f.size
			f.sent = true
		}
	}
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

// imageOf returns the image block of a frame.
func (b *builder) imageOf(f frame) rawjson.Value {
	data, detail := f.Member("data"), f.Member("detail")
	if e, ok := b.resolver.Image(data, 0); ok {
		data = quoted(b.mark(e))
	}
	if !detail.Truthy() {
		detail = nil
	}
	return object("type", "image", "data", data, "mimeType", f.Member("mimeType"), "detail", detail)
}

// gapNote says which frames are not there.
func gapNote(missing bool, count int, bytes int64) string {
	frames := grouped(float64(count)) + " archived image frame" + plural(float64(count))
	if missing {
		return "-------------- " + frames + " unavailable here --------------"
	}
	size := strconv.FormatInt(bytes, 10) + " B"
	switch {
	case bytes >= 1_000_000:
		size = strconv.FormatFloat(float64(bytes)/1_000_000, 'f', 1, 64) + " MB"
	case bytes >= 1_000:
		size = strconv.FormatFloat(float64(bytes)/1_000, 'f', 1, 64) + " KB"
	}
	return "-------------- snapcompact image middle omitted\n" + frames + " could not be included. " + size +
		" of base64 exceeded the per-request snapcompact payload budget. The compacted summary and visible text edges remain available.\n--------------"
}

// plainText returns text of an archive without what marks it for drawing.
func plainText(text string) string {
	return strings.NewReplacer("\x0e", "", "\x0f", "", "\u2588", "\n").Replace(text)
}

package sent

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
)

// position is where an object lies, by the key above it, as far as images are concerned.
type position uint8

const (
	elsewhere position = iota
	inContent          // below the key content: image blocks
	inImages           // below the key images: anything with the data of an image

)

// refFrame is what is known of an open array or object.
type refFrame struct {
	object    bool
	at        position // the key above it; that of an array holds for its elements
	member    string   // the member being read, if it matters
	edits     int      // how many edits there were before it
	isImage   bool     // type is image
	isDrawing bool     // type is image_generation_call
	hasMime   bool     // mimeType says that it is an image
	data      rawjson.Value
	dataAt    int
	result    rawjson.Value
	resultAt  int
}

// refMembers are the members of objects that matter for images.
var refMembers = map[string]bool{
	"type": true, "data": true, "mimeType": true, "result": true, "image_url": true, "content": true, "images": true,
}

// refEdits returns the edits that resolve the references to blobs in an entry: image blocks in content, images[], the
// result of image_generation_call, and image_url. It reads token by token, so nesting has no limit.
func (b *builder) refEdits(text rawjson.Value) (edits rawjson.Edits, err error) {
	var s rawjson.Scanner
	var frames []refFrame
	top := func() *refFrame {
		if len(frames) == 0 {
			return &refFrame{}
		}
		return &frames[len(frames)-1]
	}
	for i := 0; i < len(text); {
		f := top()
		switch c := text[i]; c {
		case '"':
			end, _ := s.SkipString(text, i+1)
			token := text[i:end]
			if next := rawjson.SkipSpace(text, end); f.object && f.member == "" && next < len(text) && text[next] == ':' {
				name, _ := token.Bytes()
				if f.member = "-"; refMembers[string(name)] {
					f.member = string(name)
				}
				i = next + 1
				continue
			}
			if f.object {
				if f.member == "image_url" {
					if edits, err = b.resolver.URL(edits, token, i); err != nil {
						return nil, err
					}
				}
				f.note(token, i)
			}
			i = end
		case '{', '[':
			at := elsewhere
			switch {
			case f.object && f.member == "content":
				at = inContent
			case f.object && f.member == "images":
				at = inImages
			case !f.object && len(frames) > 0:
				at = f.at
			}
			frames = append(frames, refFrame{object: c == '{', at: at, edits: len(edits)})
			i++
		case '}', ']':
			if c == '}' {
				edits = b.closeRef(edits, f)
			}
			frames = frames[:len(frames)-1]
			i++
		case ',':
			f.member = ""
			i++
		default:
			i++
		}
	}
	return edits, b.ctx.Err()
}

// note takes a member that is a string.
func (f *refFrame) note(token rawjson.Value, at int) {
	switch f.member {
	case "type":
		f.isImage, f.isDrawing = token.Is("image"), token.Is("image_generation_call")
	case "mimeType":
		mime, _ := token.Text()
		f.hasMime = strings.HasPrefix(strings.ToLower(mime), "image/")
	case "data":
		f.data, f.dataAt = token, at
	case "result":
		f.result, f.resultAt = token, at
	}
}

// closeRef adds the edits of an object that depend on several of its members.
func (b *builder) closeRef(edits rawjson.Edits, f *refFrame) rawjson.Edits {
	image := f.at == inContent && f.isImage || f.at == inImages && (f.isImage || f.hasMime)
	if image && f.data != nil {
		if e, ok := b.resolver.Image(f.data, f.dataAt); ok {
			return append(edits[:f.edits], e)
		}
	} else if f.isDrawing && f.result != nil {
		if e, ok := b.resolver.Image(f.result, f.resultAt); ok {
			return append(edits, e)
		}
	}
	return edits
}

// within returns the edits in a part of a text, as edits of the part.
func within(edits rawjson.Edits, text, part rawjson.Value) (in rawjson.Edits) {
	at := part.OffsetIn(text)
	for _, e := range edits {
		if e.Start >= at && e.End <= at+len(part) {
			e.Start, e.End = e.Start-at, e.End-at
			in = append(in, e)
		}
	}
	return in
}

// marker begins the text that stands for a blob while a message is composed. No session file can have it.
var marker = "blob:" + rand.Text() + ":"

// mark returns a text with marks in the place of the edits, which are in order.
func mark(text rawjson.Value, edits rawjson.Edits) rawjson.Value {
	marks := make(rawjson.Edits, len(edits))
	for i, e := range edits {
		marks[i] = rawjson.Edit{Start: e.Start, End: e.End, Text: marker + strconv.Itoa(i) + ";"}
	}
	return marks.Apply(text)
}

// addMarked adds a composed message to the document, with what its marks stand for.
func (b *builder) addMarked(composed []byte, edits rawjson.Edits) {
	rest := string(composed)
	for len(edits) > 0 {
		before, after, found := strings.Cut(rest, marker)
		if !found {
			break
		}
		n, tail, _ := strings.Cut(after, ";")
		i, err := strconv.Atoi(n)
		if err != nil || i >= len(edits) {
			panic(fmt.Sprintf("sent: mark %q", n))
		}
		b.doc.AddText(before)
		if e := edits[i]; e.Blob != nil {
			b.doc.AddBlob(e.Blob)
		} else {
			b.doc.AddText(e.Text)
		}
		rest = tail
	}
	b.doc.AddText(rest)
}

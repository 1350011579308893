package sent

import (
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
)

// maxDepth is how deep references are looked for. The deepest that a client writes, those in the history that a provider
// keeps, are 7 deep.
const maxDepth = 32

// refFinder finds the edits that resolve references to blobs.
type refFinder struct {
	b     *builder
	text  rawjson.Value
	edits rawjson.Edits
	err   error
}

// refEdits returns the edits that resolve the references to blobs in a text: image blocks below the key content, anything
// with the data of an image below images, the result of image_generation_call, and image_url.
func (b *builder) refEdits(text rawjson.Value) (rawjson.Edits, error) {
	f := refFinder{b: b, text: text}
	f.find(text, "", 0)
	if f.err == nil {
		f.err = b.ctx.Err()
	}
	return f.edits, f.err
}

// find looks at a value below a key; the elements of an array are below the key of the array.
func (f *refFinder) find(v rawjson.Value, key string, depth int) {
	if depth > maxDepth {
		return
	}
	v.EachElement(func(element rawjson.Value, _ int) bool {
		f.find(element, key, depth+1)
		return f.err == nil
	})
	before := len(f.edits)
	var kind, mime, data, result rawjson.Value
	v.EachMember(func(m rawjson.Member) bool {
		name, _ := m.Key.Bytes()
		switch string(name) {
		case "type":
			kind = m.Value
		case "mimeType":
			mime = m.Value
		case "data":
			data = m.Value
		case "result":
			result = m.Value
		case "image_url":
			f.edits, f.err = f.b.resolver.URL(f.edits, m.Value, m.Value.OffsetIn(f.text))
		}
		if f.err == nil && (m.Value.IsObject() || m.Value.IsArray()) {
			f.find(m.Value, string(name), depth+1)
		}
		return f.err == nil
	})
	media, _ := mime.Text()
	isImage := kind.Is("image") || key == "images" && strings.HasPrefix(strings.ToLower(media), "image/")
	switch {
	case isImage && (key == "content" || key == "images") && data.IsString():
		if e, ok := f.b.resolver.Image(data, data.OffsetIn(f.text)); ok {
			f.edits = append(f.edits[:before], e)
		}
	case kind.Is("image_generation_call"):
		if e, ok := f.b.resolver.Image(result, result.OffsetIn(f.text)); ok {
			f.edits = append(f.edits, e)
		}
	}
}

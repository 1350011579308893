package view

import (
	"bytes"
	"encoding/base64"
	"io"
	"net/http"
	"slices"

	"sessionfs/sessioncore/internal/rawjson"
)

// This file writes images that are in entries into pages.

// startSize is how much of a file tells its type: DetectContentType looks at no more.
const startSize = 512

// maxHeldPictures bounds the images of a message's results that wait for their calls, in bytes.
const maxHeldPictures = 32 << 20

// held returns blocks that stay valid. Images are held while there is room, which they take; of the
// others the note remains.
func held(blocks []block, room *int) []block {
	kept := slices.Clone(blocks)
	for i := range kept {
		b := &kept[i]
		if b.kind != pictureLine {
			continue
		}
		*room -= len(b.text)
		if *room < 0 {
			b.text = nil
		}
		b.text = bytes.Clone(b.text)
	}
	return kept
}

// picture writes an image in an entry, or its note if a page does not show it. Its bytes alone tell
// its type.
func (p *pageWriter) picture(b *block) {
	data := base64Of(b.text)
	kind := pictureType(data)
	isPicture := kind != "" && base64.StdEncoding.DecodedLen(len(data)) <= maxImage
	if p.blobs == nil || !isPicture || !isBase64(data) {
		p.block(&block{kind: noteLine, line: b.line})
		return
	}
	p.write(`<p><img alt="An image in the entry" src="data:`, escaped(kind), ";base64,")
	_, _ = p.out.Write(data)
	p.write("\"></p>\n")
}

// base64Of returns the base64 data in a JSON string, which may be a data URL.
func base64Of(v rawjson.Value) []byte {
	text, ok := v.Bytes()
	if !ok {
		return nil
	}
	rest, isURL := bytes.CutPrefix(text, []byte("data:"))
	if isURL {
		_, text, _ = bytes.Cut(rest, []byte(";base64,"))
	}
	return text
}

// pictureType returns the type of an image in base64 that pages show, "" for other data.
func pictureType(data []byte) string {
	const group = 4 // characters, which are decoded together
	size := min(len(data), base64.StdEncoding.EncodedLen(startSize))
	size -= size % group
	start, _ := base64.StdEncoding.DecodeString(string(data[:size])) // as far as it is valid
	kind := http.DetectContentType(start)
	if !slices.Contains(pictures, kind) {
		return ""
	}
	return kind
}

// isBase64 reports whether data is valid. No character of it ends an attribute.
func isBase64(data []byte) bool {
	_, err := io.Copy(io.Discard, base64.NewDecoder(base64.StdEncoding, bytes.NewReader(data)))
	return err == nil && !bytes.ContainsAny(data, "\r\n")
}

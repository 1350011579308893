package persist

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/names"
)

// shorten returns the edit that a string with this key needs, or nil, and the number of lines left if it was
// truncated.
func (p *persister) shorten(start int, token rawjson.Value, key persistKey) (e *rawjson.Edit, lines int) {
	if key == keyImageURL {
		if text, _ := token.Bytes(); isImageURL(text) {
			if !p.rules.Blobs { // leave it whole: a truncated image is useless
				return nil, 0
			}
			return &rawjson.Edit{Start: start, End: start + len(token), Text: p.blob([]byte(names.TextUTF8(string(text))), "")}, 0
		}
	}
	body := token[1 : len(token)-1]
	if len(body) <= maxPersist || unitsOf(body) <= maxPersist { // a code unit takes at least a byte
		return nil, 0
	}
	if key.isSignature() {
		if p.rules.Newer {
			return nil, 0
		}
		return &rawjson.Edit{Start: start, End: start + len(token), Text: `""`}, 0
	}
	cut := cutUnits(body, maxPersist-noticeUnits)
	lines = 1 + noticeBreaks + bytes.Count(rawjson.AppendDecoded(nil, body[:cut]), []byte{'\n'})
	return &rawjson.Edit{Start: start + 1 + cut, End: start + len(token) - 1, Text: truncationNotice}, lines
}

// image moves an image block's data into a blob.
func (p *persister) image(f *persistFrame) {
	token := p.text[f.data.start:f.data.end]
	text, _ := token.Bytes()
	if isReference(text) || unitsOf(token[1:len(token)-1]) < minBlob {
		return
	}
	if !p.rules.Blobs {
		if f.dataEdit >= 0 { // a truncated image is useless
			p.edits[f.dataEdit] = rawjson.Edit{Start: f.data.start, End: f.data.end, Text: string(token)}
		}
		return
	}
	e := rawjson.Edit{Start: f.data.start, End: f.data.end, Text: p.blob(decodeBase64(text), "")}
	if f.dataEdit >= 0 {
		p.edits[f.dataEdit] = e
	} else {
		p.edits = append(p.edits, e)
	}
}

// isReference reports whether a text refers to a blob.
func isReference(text []byte) bool { return bytes.HasPrefix(text, []byte(rawjson.BlobPrefix)) }

// blob records data to be stored and returns the reference to it, as JSON.
func (p *persister) blob(data []byte, ending string) string {
	p.blobs = append(p.blobs, Blob{data, ending})
	return `"` + rawjson.BlobPrefix + BlobName(data) + `"`
}

// BlobName returns the name of a blob: its SHA-256 in lower-case hex.
func BlobName(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// isImageURL reports whether a text is a data URL of an image in base64.
func isImageURL(text []byte) bool {
	return bytes.HasPrefix(text, []byte("data:image/")) && bytes.Contains(text, []byte(";base64,"))
}

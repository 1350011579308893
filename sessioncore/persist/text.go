package persist

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"unicode/utf8"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/names"
)

// nextUnits returns the size in bytes of the first character of a JSON string's body and its number of UTF-16 code
// units; high reports whether it is a lone high surrogate.
func nextUnits(body []byte) (size, units int, high bool) {
	switch c := body[0]; {
	case c == '\\' && body[1] == 'u':
		unit := rawjson.Hex4(body[2:])
		if !rawjson.IsHighSurrogate(unit) {
			return 6, 1, false
		}
		if len(body) >= 12 && body[6] == '\\' && body[7] == 'u' && rawjson.IsLowSurrogate(rawjson.Hex4(body[8:])) {
			return 12, 2, false
		}
		return 6, 1, true
	case c == '\\':
		return 2, 1, false
	case c < utf8.RuneSelf:
		return 1, 1, false
	}
	switch _, n := utf8.DecodeRune(body); n {
	case 1: // invalid UTF-8: one U+FFFD
		return rawjson.IllFormedLen(body), 1, false
	case utf8.UTFMax:
		return n, 2, false
	default:
		return n, 1, false
	}
}

// unitsOf returns the length of a JSON string's body in UTF-16 code units.
func unitsOf(body []byte) int {
	n := 0
	for i := 0; i < len(body); {
		size, units, _ := nextUnits(body[i:])
		i += size
		n += units
	}
	return n
}

// cutUnits returns the size in bytes of the first limit code units of a JSON string's body, one fewer if the last of
// them would be a high surrogate.
func cutUnits(body []byte, limit int) int {
	i, n, last := 0, 0, false
	before := 0
	for i < len(body) {
		size, units, high := nextUnits(body[i:])
		if n+units > limit {
			break
		}
		before = i
		i += size
		n += units
		last = high
	}
	if last && n == limit {
		return before
	}
	return i
}

// decodeBase64 decodes like the client: it skips characters outside the alphabet, accepts the URL alphabet, stops at
// the first "=", and drops incomplete bytes.
func decodeBase64(text []byte) []byte {
	clean := make([]byte, 0, len(text))
	for _, c := range text {
		switch {
		case c == '=':
			return decodeClean(clean)
		case c == '-':
			c = '+'
		case c == '_':
			c = '/'
		}
		if c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '+' || c == '/' {
			clean = append(clean, c)
		}
	}
	return decodeClean(clean)
}

func decodeClean(clean []byte) []byte {
	if len(clean)%4 == 1 {
		clean = clean[:len(clean)-1]
	}
	data, _ := base64.RawStdEncoding.AppendDecode(nil, clean)
	return data
}

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

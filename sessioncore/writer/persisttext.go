package writer

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"regexp"
	"strings"
	"unicode/utf8"

	"sessionfs/sessioncore/internal/rawjson"
)

// nextUnits returns the size in bytes and the UTF-16 code units of the first character of a JSON
// string's body, which must not be empty; high reports a lone high surrogate.
func nextUnits(body []byte) (size, units int, high bool) {
	c := body[0]
	switch {
	case c == '\\' && body[1] == 'u':
		r, size := rawjson.ReadEscape(body)
		units = size / len(`\uXXXX`) // one, or two of a pair of surrogates
		isHigh := r >= 0xD800 && r < 0xDC00
		return size, units, isHigh
	case c == '\\':
		return len(`\n`), 1, false
	case c < utf8.RuneSelf:
		return 1, 1, false
	}
	_, size = utf8.DecodeRune(body)
	switch size {
	case 1: // invalid UTF-8: one U+FFFD
		return rawjson.IllFormedLen(body), 1, false
	case utf8.UTFMax: // beyond the code points of one unit
		return size, 2, false
	default:
		return size, 1, false
	}
}

// hasUnits reports whether a JSON string's body has n UTF-16 code units or more. It reads no more of
// it than that.
func hasUnits(body []byte, n int) bool {
	if len(body) < n { // a code unit takes at least a byte
		return false
	}
	for len(body) > 0 && n > 0 {
		size, units, _ := nextUnits(body)
		body = body[size:]
		n -= units
	}
	return n <= 0
}

// cutUnits reports whether a JSON string's body is too long, and returns the bytes to keep before
// the notice, which do not end within a surrogate pair.
func cutUnits(body []byte) (end int, long bool) {
	if !hasUnits(body, maxPersist+1) {
		return len(body), false
	}
	left := maxPersist - noticeUnits
	for {
		size, units, isHigh := nextUnits(body[end:])
		needed := units
		if isHigh {
			needed++ // it is not kept at the end
		}
		if left < needed {
			return end, true
		}
		end += size
		left -= units
	}
}

// isLongImage reports whether a value, the base64 of an image, is long enough for a blob and not a
// reference to one already.
func isLongImage(v rawjson.Value) bool {
	text, ok := v.Bytes()
	if !ok || bytes.HasPrefix(text, []byte(rawjson.BlobPrefix)) {
		return false
	}
	return hasUnits(v[1:len(v)-1], minBlob)
}

// image records an image in base64 to be stored and returns the reference to it, as JSON.
func (p *persister) image(v rawjson.Value, ending string) string {
	text, _ := v.Bytes()
	return p.blob(decodeBase64(text), ending)
}

// blob records data to be stored and returns the reference to it, as JSON.
func (p *persister) blob(data []byte, ending string) string {
	p.blobs = append(p.blobs, BlobReference{Data: data, Ending: ending})
	return `"` + rawjson.BlobPrefix + BlobName(data) + `"`
}

// BlobName returns the name of a blob: its SHA-256 in lower-case hex.
func BlobName(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// decodeBase64 decodes like the client: it skips characters outside the alphabet, accepts the URL
// alphabet, stops at "=", and drops incomplete bytes.
func decodeBase64(text []byte) []byte {
	text, _, _ = bytes.Cut(text, []byte{'='})
	clean := make([]byte, 0, len(text))
	for _, c := range text {
		switch {
		case c == '-':
			c = '+'
		case c == '_':
			c = '/'
		}
		if isBase64(c) {
			clean = append(clean, c)
		}
	}
	data, _ := base64.RawStdEncoding.AppendDecode(nil, clean)
	return data
}

// isBase64 reports whether a byte is of the alphabet of base64.
func isBase64(c byte) bool {
	switch {
	case c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c >= '0' && c <= '9':
		return true
	}
	return c == '+' || c == '/'
}

var plainEnding = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,31}$`)

// imageEnding returns the ending of the second name that the client gives the blob of an image, for
// viewers; "" for none. mime is in lower case.
func imageEnding(mime string) string {
	subtype, ok := strings.CutPrefix(mime, "image/")
	if subtype == "jpeg" {
		return "jpg"
	}
	subtype, _, _ = strings.Cut(subtype, ";")
	subtype, _, _ = strings.Cut(subtype, "+")
	subtype = strings.TrimPrefix(subtype, ".")
	if !ok || !plainEnding.MatchString(subtype) {
		return ""
	}
	return subtype
}

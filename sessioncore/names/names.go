package names

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"sessionfs/sessioncore/internal/rawjson"
)

// MaxName is the maximum length of an encoded name in bytes. It leaves room for suffixes within the
// 255 bytes of file systems.
const MaxName = 200

// HashLength is the number of hexadecimal digits of the hash at the end of a cut name.
const HashLength = 16

// FileName returns the file name for a WTF-8 text: the text, percent-encoded where needed. If that
// is longer than MaxName bytes, it is cut, and a tilde and a hash are appended. Different texts
// have different names.
func FileName(text string) string {
	enc := encodeName(text)
	if len(enc) <= MaxName {
		return enc
	}
	return WithHash(enc, text)
}

// WithHash returns a name, cut at MaxName bytes, with a tilde and the hash of a text that distinguishes it
// from others.
func WithHash(name, text string) string {
	return name[:min(len(name), MaxName)] + "~" + Hash([]byte(text))
}

// Hash returns the hash at the end of a cut name.
func Hash(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:HashLength]
}

// encodeName percent-encodes the characters that a plain name cannot have.
func encodeName(text string) string {
	if isPlainName(text) {
		return text
	}
	buffer := make([]byte, 0, len(text)+16)
	return string(AppendCut(buffer, []byte(text), math.MaxInt))
}

// isPlainName reports whether a text is its own encoding, without allocating.
func isPlainName(text string) bool {
	if text == "" || text[0] == '.' || text[0] == '-' {
		return false
	}
	i := 0
	for i < len(text) {
		r := rune(text[i])
		n := 1
		if r >= utf8.RuneSelf {
			end := min(i+utf8.UTFMax, len(text))
			r, n = rawjson.DecodeRune([]byte(text[i:end])) // of a few bytes, which stay on the stack
		}
		if !PlainRune(r, n) {
			return false
		}
		i += n
	}
	return true
}

// PlainRune reports whether a name may have the code point r of size bytes. Controls (IsControl),
// surrogates and ill-formed bytes are encoded.
func PlainRune(r rune, size int) bool {
	if r < utf8.RuneSelf {
		isControl := r < 0x20 || r == 0x7F
		return !isControl && r != '/' && r != '%' && r != '~'
	}
	if IsControl(r) || utf16.IsSurrogate(r) {
		return false
	}
	isIllFormed := r == utf8.RuneError && size != len(rawjson.Replacement)
	return !isIllFormed
}

// AppendPercent appends the bytes of raw, each as %XX.
func AppendPercent(dst []byte, raw string) []byte {
	for i := range len(raw) {
		dst = fmt.Appendf(dst, "%%%02X", raw[i])
	}
	return dst
}

// EscapeFirst encodes the first byte of a plain name that equals a fixed one (docs/design.md,
// Names).
func EscapeFirst(name string) string {
	return string(AppendPercent(nil, name[:1])) + name[1:]
}

// TooLong reports whether FileName cuts the name of an id, so that DecodeName cannot restore it.
func TooLong(id []byte) bool {
	longest := len("%XX") * len(id)
	if longest <= MaxName {
		return false // as of most ids, without an allocation
	}
	return len(encodeName(string(id))) > MaxName
}

// DecodeName returns the text with the FileName name. ok is false if there is none or name is cut.
func DecodeName(name string) (text string, ok bool) {
	if strings.IndexByte(name, '%') < 0 {
		return name, len(name) <= MaxName && isPlainName(name)
	}
	if name == "%" {
		return "", true
	}
	text, err := url.PathUnescape(name)
	if err != nil || len(name) > MaxName {
		return text, false
	}
	return text, encodeName(text) == name
}

// DecodeNameAmong returns the text with the FileNameAmong name in a directory with fixed names. ok
// is false if there is none or name is cut.
func DecodeNameAmong(name string, fixed []string) (text string, ok bool) {
	text, ok = DecodeName(name)
	if ok {
		return text, !slices.Contains(fixed, text) // a fixed name has its first byte encoded
	}
	for _, f := range fixed {
		if name == EscapeFirst(f) {
			return f, true
		}
	}
	return "", false
}

// FileNameAmong returns the FileName of a text, with the first byte encoded if that equals a fixed
// name of the directory.
func FileNameAmong(text string, fixed []string) string {
	name := FileName(text)
	if slices.Contains(fixed, name) {
		return EscapeFirst(name)
	}
	return name
}

// CutName returns the hash at the end of a name that FileName cut. ok is false for other names.
func CutName(name string) (hash string, ok bool) {
	if len(name) != MaxName+1+HashLength || name[MaxName] != '~' {
		return "", false
	}
	hash = name[MaxName+1:]
	return hash, strings.Trim(hash, "0123456789abcdef") == ""
}

// LineSuffix splits "<name>~<line number>" at its last tilde.
func LineSuffix(name string) (base string, line int64, ok bool) {
	at := strings.LastIndexByte(name, '~')
	if at < 0 {
		return "", 0, false
	}
	digits := name[at+1:]
	line, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || line < 1 || strconv.FormatInt(line, 10) != digits {
		return "", 0, false
	}
	return name[:at], line, true
}

// TextUTF8 converts WTF-8 text to UTF-8. Lone surrogates become U+FFFD.
func TextUTF8(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	b := []byte(text)
	out := make([]byte, 0, len(text))
	for len(b) > 0 {
		r, n := rawjson.DecodeRune(b)
		out = utf8.AppendRune(out, r) // a surrogate is written as U+FFFD
		b = b[n:]
	}
	return string(out)
}

// AppendCut appends text, encoded as a name, to the beginning of a name in dst. It stops at limit
// bytes, and cuts neither a %XX nor a character.
func AppendCut(dst, text []byte, limit int) []byte {
	if len(dst)+len(text) == 0 {
		return append(dst, '%') // the empty name
	}
	for len(text) > 0 {
		r, n := rawjson.DecodeRune(text)
		isMark := r == '.' || r == '-'
		isLeading := isMark && len(dst) == 0
		if PlainRune(r, n) && !isLeading {
			if len(dst)+n > limit {
				return dst
			}
			dst = append(dst, text[:n]...)
		} else {
			for i := range n {
				if len(dst)+len("%XX") > limit {
					return dst
				}
				dst = AppendPercent(dst, string(text[i:i+1]))
			}
		}
		text = text[n:]
	}
	return dst
}

// maxLeaseName is the maximum length of an id that names its lease.
const maxLeaseName = 128

// LeaseName returns the name of the lease on the session with an id in WTF-8 (docs/format.md, omp
// after 18.2.3): the id, or a hash of an id that is no safe file name.
func LeaseName(id string) string {
	const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
	if id != "" && len(id) <= maxLeaseName && strings.Trim(id, safe) == "" {
		return id
	}
	return fmt.Sprintf("h-%016x", wyhash(0, TextUTF8(id)))
}

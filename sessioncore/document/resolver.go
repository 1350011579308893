package document

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// HashLen is the length of a blob's name: a SHA-256 in hexadecimal.
const HashLen = 64

// IsBlobHash reports whether name has the form of a blob's name: 64 lower-case hexadecimal digits.
// Other text in a reference opens no file (docs/format.md, Context).
func IsBlobHash(name string) bool {
	return len(name) == HashLen && strings.Trim(name, "0123456789abcdef") == ""
}

// longestReference is the length of a blob reference in JSON with each byte escaped, as \u0041 is.
const longestReference = len(`\u0041`)*(len(rawjson.BlobPrefix)+HashLen) + len(`""`)

// BlobHash returns the hash in a blob reference. ok is false if v is not a blob reference.
func BlobHash(v rawjson.Value) (hash string, ok bool) {
	if len(v) < HashLen || len(v) > longestReference { // most texts are not decoded
		return "", false
	}
	text, _ := v.Text()
	hash, ok = strings.CutPrefix(text, rawjson.BlobPrefix)
	return hash, ok && IsBlobHash(hash)
}

// Resolver finds the edits that turn persisted text into text for the model: references become
// blobs, ill-formed bytes become U+FFFD, and numbers that overflow a double become null. It keeps
// the bounds of one document. It is for one goroutine. The zero Resolver keeps references.
type Resolver struct {
	ctx     context.Context // when it is done, the edits are not complete
	blobs   Blobs           // nil leaves references unchanged
	room    int64           // bytes of blobs that may be added
	text    int64           // bytes of blobs that may be held as text
	skipped int             // references left for want of room
	known   map[string]knownBlob
}

// knownBlob caches the facts about a blob for one document, which may refer to it many times.
type knownBlob struct {
	size       int64
	err        error
	plainKnown bool // plain and plainErr are set
	plain      bool // see isPlainText
	plainErr   error
}

const (
	// MaxResolved bounds the bytes of the blobs in one context. A model gets less, but a small
	// session can refer to one large blob many times. Other references stay.
	MaxResolved = 256 << 20
	// MaxInlineText bounds the bytes of the blobs that are copied into the text because JSON
	// escapes some of their characters. Data URLs, the usual blobs, have none; a larger blob with
	// such characters stays a reference.
	MaxInlineText = 16 << 20
)

// NewResolver returns a resolver for one document. With nil for blobs, references stay references.
func NewResolver(ctx context.Context, blobs Blobs) *Resolver {
	return &Resolver{
		ctx:   ctx,
		blobs: blobs,
		room:  MaxResolved,
		text:  MaxInlineText,
		known: map[string]knownBlob{},
	}
}

// Image returns the edit that replaces the content of a string, at an offset of the edited text, by
// the base64 of its blob. ok is false if it is no reference, or the blob is missing or too large.
func (r *Resolver) Image(token rawjson.Value, at int) (e rawjson.TextEdit, ok bool) {
	hash, ok := BlobHash(token)
	if !ok || r.blobs == nil || r.ctx.Err() != nil {
		return e, false
	}
	size, err := r.size(hash)
	if err != nil {
		return e, false
	}
	blob := &rawjson.Blob{Hash: hash, Base64: true, Bytes: size}
	if !r.fits(blob.Size()) {
		return e, false
	}
	e = rawjson.TextEdit{
		Start: at + 1, // within the quotes
		End:   at + len(token) - 1,
		Blob:  blob,
	}
	return e, true
}

// size returns the size of a blob in bytes, cached, also the error.
func (r *Resolver) size(hash string) (int64, error) {
	blob, isKnown := r.known[hash]
	if !isKnown {
		blob.size, blob.err = r.blobs.Size(hash)
		r.known[hash] = blob
	}
	return blob.size, blob.err
}

// fits takes n bytes of the room. If there are fewer, it returns false, the reference stays and is counted as skipped.
func (r *Resolver) fits(n int64) bool {
	if n > r.room {
		r.skipped++
		return false
	}
	r.room -= n
	return true
}

// ImageEdits adds the edits that resolve the image blocks of a content array (docs/format.md,
// Context). base is its offset in the edited text.
func (r *Resolver) ImageEdits(edits rawjson.Edits, content rawjson.Value, base int) rawjson.Edits {
	if r.blobs == nil {
		return edits
	}
	for block := range content.EachElement {
		if r.ctx.Err() != nil {
			break
		}
		if !block.Member("type").Is("image") {
			continue
		}
		data := block.Member("data")
		e, ok := r.Image(data, base+data.OffsetIn(content))
		if ok {
			edits = append(edits, e)
		}
	}
	return edits
}

// TextEdits adds the edits for references under the key image_url, ill-formed bytes, numbers
// that overflow a double and line breaks between values, anywhere in a text. base is its offset in the edited text. It
// scans tokens, without a depth limit. The error is of the context, or of a blob that cannot be read.
func (r *Resolver) TextEdits(edits rawjson.Edits, text rawjson.Value, base int) (rawjson.Edits, error) {
	var s rawjson.Scanner
	isURL := false // the last string was the key image_url, and no value has followed
	for i := 0; i < len(text); {
		c := text[i]
		isCRLF := c == '\r' && i+1 < len(text) && text[i+1] == '\n'
		switch {
		case c == '"':
			end, _ := s.SkipString(text, i+1)
			token := text[i:end]
			switch {
			case isKey(text, end):
				isURL = token.Is("image_url")
			case isURL:
				var err error
				edits, err = r.URL(edits, token, base+i)
				if err != nil {
					return nil, err
				}
				isURL = false
			}
			edits = IllFormedEdits(edits, token, base+i)
			i = end
		case c == '-' || c >= '0' && c <= '9':
			end, _ := s.SkipNumber(text, i)
			if overflows(text[i:end]) {
				edits = append(edits, rawjson.TextEdit{
					Start: base + i,
					End:   base + end,
					Text:  "null",
				})
			}
			i = end
			isURL = false
		case c == '{', c == '[', c == 't', c == 'f', c == 'n': // another value
			i++
			isURL = false
		case c == '\n', isCRLF:
			// A value that spans several lines is put on one line.
			edits = append(edits, rawjson.TextEdit{
				Start: base + i,
				End:   base + i + 1,
				Text:  " ",
			})
			i++
		default:
			i++
		}
	}
	return edits, nil
}

// isKey reports whether the string that ends at an offset of a JSON text is the key of a member.
func isKey(text rawjson.Value, end int) bool {
	next := rawjson.SkipSpace(text, end)
	return next < len(text) && text[next] == ':'
}

// overflows reports whether a number is infinite as a double, which JSON.stringify writes as null.
func overflows(number []byte) bool {
	if len(number) < rawjson.BigNumberLen && !strings.ContainsAny(string(number), "eE") {
		return false
	}
	f, _ := strconv.ParseFloat(string(number), 64)
	return math.IsInf(f, 0)
}

// IllFormedEdits adds the replacement of each ill-formed UTF-8 sequence in text by U+FFFD. base is
// the offset of text in the edited text.
func IllFormedEdits(edits rawjson.Edits, text []byte, base int) rawjson.Edits {
	at := 0
	for {
		at += rawjson.ValidPrefix(text[at:])
		if at == len(text) {
			return edits
		}
		n := rawjson.IllFormedLen(text[at:])
		edits = append(edits, rawjson.TextEdit{
			Start: base + at,
			End:   base + at + n,
			Text:  rawjson.Replacement,
		})
		at += n
	}
}

// URL adds the edit that replaces a reference by the text of its blob. token is the string with the reference,
// and at its offset in the edited text. Without an edit the reference stays: it is no reference, the blob is
// missing, or it exceeds a limit.
func (r *Resolver) URL(edits rawjson.Edits, token rawjson.Value, at int) (rawjson.Edits, error) {
	hash, isReference := BlobHash(token)
	if !isReference || r.blobs == nil {
		return edits, nil
	}
	err := r.ctx.Err()
	if err != nil {
		return nil, err
	}
	size, err := r.size(hash)
	if err != nil { // the blob is missing
		return edits, nil
	}
	plain, err := r.plain(hash, size)
	if errors.Is(err, fs.ErrNotExist) {
		return edits, nil
	}
	if err != nil {
		return nil, err
	}
	if !r.fits(size) {
		return edits, nil
	}
	e := rawjson.TextEdit{Start: at + 1, End: at + len(token) - 1}
	if plain {
		e.Blob = &rawjson.Blob{Hash: hash, Bytes: size}
		return append(edits, e), nil
	}
	escaped, fits, err := r.escapedBlob(hash, size)
	if err != nil {
		return nil, err
	}
	if !fits {
		r.skipped++
		return edits, nil
	}
	e.Text = escaped
	return append(edits, e), nil
}

// escapedBlob returns the content of a blob as the inside of a JSON string, and takes its bytes from those
// that may be held as text. fits is false if there are too few left.
func (r *Resolver) escapedBlob(hash string, size int64) (escaped string, fits bool, err error) {
	if size > r.text {
		return "", false, nil
	}
	text, err := r.readBlob(hash, size)
	if err != nil {
		return "", false, err
	}
	wellFormed := rawjson.AppendUTF8(nil, text)
	quoted := rawjson.AppendQuoted(nil, string(wellFormed))
	escaped = string(quoted[1 : len(quoted)-1])
	if int64(len(escaped)) > r.text {
		r.text = 0 // no further blob is read in vain
		return "", false, nil
	}
	r.text -= int64(len(escaped))
	return escaped, true, nil
}

// plain is isPlainText, which reads the whole blob, cached.
func (r *Resolver) plain(hash string, size int64) (bool, error) {
	blob := r.known[hash]
	if !blob.plainKnown {
		blob.plainKnown = true
		blob.plain, blob.plainErr = r.isPlainText(hash, size)
		r.known[hash] = blob
	}
	return blob.plain, blob.plainErr
}

// isPlainText reports whether a blob consists of ASCII characters that JSON does not escape.
func (r *Resolver) isPlainText(hash string, size int64) (bool, error) {
	obj, err := r.blobs.Open(hash)
	if err != nil {
		return false, err
	}
	defer obj.Close()
	const pieceSize = 64 << 10
	buf := make([]byte, min(size, pieceSize))
	for off := int64(0); off < size; off += int64(len(buf)) {
		buf = buf[:min(int64(len(buf)), size-off)]
		err := storage.ReadFull(obj, buf, off)
		if err != nil {
			return false, err
		}
		for _, c := range buf {
			isASCII := c >= ' ' && c < utf8.RuneSelf
			if !isASCII || c == '"' || c == '\\' {
				return false, nil
			}
		}
	}
	return true, nil
}

// readBlob reads a blob of a size.
func (r *Resolver) readBlob(hash string, size int64) ([]byte, error) {
	obj, err := r.blobs.Open(hash)
	if err != nil {
		return nil, err
	}
	defer obj.Close()
	b := make([]byte, size)
	return b, storage.ReadFull(obj, b, 0)
}

// EachReference calls f for each blob reference in an entry, a string under data or image_url.
func EachReference(text rawjson.Value, f func(hash string)) {
	var s rawjson.Scanner
	mayRefer := false // the last key was one of those, and no object or list has begun since
	for i := 0; i < len(text); {
		c := text[i]
		if c != '"' {
			if c == '{' || c == '[' {
				mayRefer = false
			}
			i++
			continue
		}
		end, _ := s.SkipString(text, i+1)
		token := text[i:end]
		hash, isReference := BlobHash(token)
		switch {
		case isKey(text, end):
			mayRefer = token.Is("data") || token.Is("image_url")
		case isReference && mayRefer:
			f(hash)
		}
		i = end
	}
}

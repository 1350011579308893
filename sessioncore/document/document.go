package document

import (
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"sync"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// Document is a generated file: a list of pieces, most of which are ranges of the session file, blobs, or texts
// made on demand. Its size is exact, and its content is never held. It shows one snapshot, which it references
// until Close. It is safe for concurrent use.
type Document struct {
	source Source
	blobs  Blobs
	pieces []piece
	size   int64

	closed     func() // see OnClose; nil for nothing
	hasBlobs   bool
	unresolved int // number of references to blobs that there was no room for

	maker  Maker
	making sync.Mutex // guards the fields below
	made   []byte     // text of the last piece that was made
	madeAt int64      // offset of that piece in the document
	known  Checked
}

// Source is a snapshot of a session, as far as its documents need it. ReadAt reads the pinned file.
type Source interface {
	io.ReaderAt
	Retain()
	Release()
	// Changed returns the current state of the file, and whether that is another one than when the entries were indexed.
	Changed() (now storage.Token, changed bool, err error)
	// CheckRange checks that text, which was read at off from the file in the state now, shows entries as they were
	// indexed. The error wraps storage.ErrStale if it does not. Of an entry that text shows only a part of, all is read;
	// known caches the last of these for the next call of the same reader.
	CheckRange(text []byte, off int64, now storage.Token, known *Checked) error
}

// Checked is an entry that was found unchanged in a state of the file later than that of its snapshot.
type Checked struct {
	Entry int32
	In    storage.Token
}

// Maker makes the pieces of a Document that are not in a file.
type Maker interface {
	// Make appends the text of a piece to dst. piece is the number that AddMade was given. The text of a piece is
	// the same on each call.
	Make(dst []byte, piece int32) ([]byte, error)
	// Continues reports whether what follows the text at the beginning of its document begins with what does in that of
	// earlier, which may be nil.
	Continues(earlier Maker) bool
}

// Blobs is the blob store as documents read it. A hash is 64 lower-case hexadecimal digits.
type Blobs interface {
	// Size returns a blob's size in bytes, or an error that wraps fs.ErrNotExist.
	Size(hash string) (int64, error)
	// Open opens a blob for reading.
	Open(hash string) (storage.Object, error)
}

// piece is a part of a document: literal text, a range of the session file, a blob, or text that the maker makes.
type piece struct {
	at   int64  // offset in the document
	off  int64  // of a range: its offset in the session file
	size int64  // in the document, in bytes
	text string // literal text, "" for other pieces
	blob *rawjson.Blob
	made int32 // the number that the maker knows it by, 0 for other pieces
}

// pieceBytes is the memory of a piece without its text.
const pieceBytes = 56

// New returns an empty document of a snapshot. The caller adds pieces before the document is read. blobs has those of
// AddBlob and AddEdited, maker makes those of AddMade; either may be nil where none is added.
func New(of Source, blobs Blobs, maker Maker) *Document {
	of.Retain()
	return &Document{source: of, blobs: blobs, maker: maker}
}

// OfText returns a document of literal text.
func OfText(of Source, text []byte) *Document {
	d := New(of, nil, nil)
	d.AddText(string(text))
	return d
}

// SetResolved says that the references to blobs in the document were resolved by r, and any says that there are some.
func (d *Document) SetResolved(r *Resolver, any bool) {
	d.hasBlobs = d.blobs != nil && any
	d.unresolved = r.left
	d.pieces = slices.Clip(d.pieces)
}

// SetHasBlobs says that the document depends on blobs although it shows none.
func (d *Document) SetHasBlobs() { d.hasBlobs = true }

// Unresolved returns the number of references to blobs that there was no room for.
func (d *Document) Unresolved() int { return d.unresolved }

func (d *Document) add(p piece) {
	if p.size == 0 {
		return
	}
	if n := len(d.pieces); n > 0 && p.follows(&d.pieces[n-1]) {
		last := &d.pieces[n-1]
		last.text += p.text
		last.size += p.size
	} else {
		p.at = d.size
		d.pieces = append(d.pieces, p)
	}
	d.size += p.size
}

// isRange reports whether p is a range of the session file.
func (p *piece) isRange() bool { return p.text == "" && p.made == 0 && p.blob == nil }

// maxJoined is how long a text gets to which further texts are added, in bytes: each time it is copied.
const maxJoined = 4 << 10

// follows reports whether p can be a part of the piece before it.
func (p *piece) follows(last *piece) bool {
	if p.text != "" {
		return last.text != "" && last.size < maxJoined
	}
	return p.isRange() && last.isRange() && p.off == last.off+last.size
}

// AddText adds text to the end of the document.
func (d *Document) AddText(text string) { d.add(piece{size: int64(len(text)), text: text}) }

// AddRange adds a range of the session file to the end of the document.
func (d *Document) AddRange(off, size int64) { d.add(piece{off: off, size: size}) }

// AddBlob adds the content of a blob to the end of the document.
func (d *Document) AddBlob(b *rawjson.Blob) { d.add(piece{size: b.Size(), blob: b}) }

// AddMade adds a piece of size bytes, which the Maker makes, to the end of the document. n is the piece's number
// for the Maker, at least 1.
func (d *Document) AddMade(n int32, size int64) { d.add(piece{size: size, made: n}) }

// AddEdited adds the range of the session file at off, whose content is text, with edits applied to it. What is not
// edited is read from the file when the document is read.
func (d *Document) AddEdited(off int64, text []byte, edits rawjson.Edits) {
	at := 0
	for _, e := range edits.InOrder() {
		d.AddRange(off+int64(at), int64(e.Start-at))
		if e.Blob != nil {
			d.AddBlob(e.Blob)
		} else {
			d.AddText(e.Text)
		}
		at = e.End
	}
	d.AddRange(off+int64(at), int64(len(text)-at))
}

// Size returns the document's size in bytes.
func (d *Document) Size() int64 { return d.size }

// HasBlobs reports whether the document depends on blobs, including missing ones.
func (d *Document) HasBlobs() bool { return d.hasBlobs }

// Memory returns how many bytes the document takes besides its snapshot, roughly.
func (d *Document) Memory() int64 {
	n := int64(len(d.pieces)) * pieceBytes
	for _, p := range d.pieces {
		n += int64(len(p.text))
	}
	return n
}

// OnClose sets what Close calls. There may be one such function.
func (d *Document) OnClose(f func()) { d.closed = f }

// Close releases the snapshot.
func (d *Document) Close() {
	d.source.Release()
	if d.closed != nil {
		d.closed()
	}
}

// ReadAt implements io.ReaderAt. The error wraps storage.ErrStale if the content that the document shows no longer
// exists.
func (d *Document) ReadAt(p []byte, off int64) (n int, err error) {
	first := sort.Search(len(d.pieces), func(i int) bool { return d.pieces[i].at+d.pieces[i].size > off })
	for _, piece := range d.pieces[min(first, len(d.pieces)):] {
		if n == len(p) {
			break
		}
		skip := off + int64(n) - piece.at
		part := p[n:]
		if left := piece.size - skip; int64(len(part)) > left {
			part = part[:left]
		}
		if err := d.readPiece(piece, part, skip); err != nil {
			return n, err
		}
		n += len(part)
	}
	if err := d.check(p[:n], off, first); err != nil {
		return 0, err
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// check checks what was read into p from off on, if the file changed since it was indexed: each entry that p shows a part
// of must still have its text. first is the number of the piece at off.
func (d *Document) check(p []byte, off int64, first int) error {
	now, changed, err := d.source.Changed()
	if err != nil || !changed {
		return err
	}
	d.making.Lock()
	defer d.making.Unlock()
	for _, piece := range d.pieces[min(first, len(d.pieces)):] {
		from, to := max(piece.at, off), min(piece.at+piece.size, off+int64(len(p)))
		if from >= to {
			break
		}
		if !piece.isRange() {
			continue
		}
		if err := d.source.CheckRange(p[from-off:to-off], piece.off+from-piece.at, now, &d.known); err != nil {
			return err
		}
	}
	return nil
}

func (d *Document) readPiece(piece piece, p []byte, off int64) error {
	switch {
	case piece.text != "":
		copy(p, piece.text[off:])
		return nil
	case piece.made != 0:
		return d.readMade(piece, p, off)
	case piece.blob == nil:
		return storage.ReadFull(d.source, p, piece.off+off)
	}
	obj, err := d.blobs.Open(piece.blob.Hash)
	if err != nil {
		return fmt.Errorf("%w: blob %s", storage.ErrStale, piece.blob.Hash)
	}
	defer obj.Close()
	if !piece.blob.Base64 {
		return storage.ReadFull(obj, p, off)
	}
	return readBase64(obj, piece.blob.Bytes, p, off)
}

// readMade fills p from a piece that is made. The last piece is cached, since readers usually ask for parts of a
// piece in order.
func (d *Document) readMade(piece piece, p []byte, off int64) error {
	d.making.Lock()
	defer d.making.Unlock()
	if d.madeAt != piece.at || len(d.made) == 0 {
		text, err := d.maker.Make(d.made[:0], piece.made)
		if err == nil && int64(len(text)) != piece.size {
			// The checksums of the entries matched, so this is a bug.
			err = fmt.Errorf("a part of a document has %d bytes and was measured as %d", len(text), piece.size)
		}
		if err != nil {
			d.made = nil
			return err
		}
		d.made, d.madeAt = text, piece.at
	}
	copy(p, d.made[off:])
	return nil
}

// readBase64 fills p with the base64 encoding of obj, which has size bytes, from offset off of the encoding on.
func readBase64(obj io.ReaderAt, size int64, p []byte, off int64) error {
	start := off / 4 * 3
	end := min((off+int64(len(p))+3)/4*3, size)
	raw := make([]byte, end-start)
	if err := storage.ReadFull(obj, raw, start); err != nil {
		return err
	}
	enc := make([]byte, base64.StdEncoding.EncodedLen(len(raw)))
	base64.StdEncoding.Encode(enc, raw)
	copy(p, enc[off%4:])
	return nil
}

// An open file switches to a newer version of its content only if that begins with the whole older content. The two
// are compared by what they are made of; neither is rendered for that.

// Continues reports whether the content of d begins with that of old. What follows the text at the beginning of both
// is compared by the Maker; without one, documents of more than text do not continue each other.
func (d *Document) Continues(old *Document) bool {
	if d.size < old.size {
		return false
	}
	for i, before := range old.pieces {
		if i >= len(d.pieces) {
			return false
		}
		now, last := d.pieces[i], i+1 == len(old.pieces)
		switch {
		case before.text == "": // and the maker knows all that follows
			return now.text == "" && now.at == before.at && d.maker != nil && d.maker.Continues(old.maker)
		case last && !strings.HasPrefix(now.text, before.text), !last && now.text != before.text:
			return false
		}
	}
	return true
}

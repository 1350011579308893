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

// Document is a generated file: a list of pieces, which are ranges of the session file, blobs, or
// texts, most of these made on demand. Its size is exact, and its content is never held. It shows one
// snapshot, which it references until Close. It is safe for concurrent use.
type Document struct {
	source SnapshotSource
	blobs  Blobs
	pieces []piece
	size   int64

	closed     func() // see OnClose; may be nil
	hasBlobs   bool
	unresolved int // number of blob references left for want of room

	maker    Maker
	making   sync.Mutex // guards the fields below
	text     []byte     // the last piece that the maker made
	textAt   int64      // offset of that piece in the document
	verified CheckedEntry
}

// SnapshotSource is the snapshot of a session for its documents. ReadAt reads the pinned file.
type SnapshotSource interface {
	io.ReaderAt
	Retain()
	Release()
	// Changed returns the file's current state, and whether it differs from the indexed one.
	Changed() (now storage.Token, changed bool, err error)
	// CheckRange returns an error that wraps storage.ErrStale unless text, read at off from the
	// file in the state now, shows entries as they were indexed. It reads the rest of an entry that
	// text shows in part; known caches the last such entry for the reader's next call.
	CheckRange(text []byte, off int64, now storage.Token, known *CheckedEntry) error
}

// CheckedEntry is an entry that was verified in a later state of the file than its snapshot's.
type CheckedEntry struct {
	Entry int32
	In    storage.Token
}

// Maker makes the pieces of a Document that are not in a file.
type Maker interface {
	// Make appends the text of a piece, by its number from AddMade, to dst: always the same.
	Make(dst []byte, piece int32) ([]byte, error)
	// Continues reports whether the content after the document's leading text begins with that of
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

// piece is a part of a document: literal text, a range of the session file, a blob, or made text.
type piece struct {
	at     int64  // offset in the document
	off    int64  // of a range: its offset in the session file
	size   int64  // in the document, in bytes
	text   string // literal text, "" for other pieces
	blob   *rawjson.Blob
	number int32 // for the Maker, 0 for other pieces
}

// pieceBytes is the memory of a piece without its text.
const pieceBytes = 56

// New returns an empty document of a snapshot. The caller adds pieces before it is read.
// blobs is needed for AddBlob and AddEdited, maker for AddMade; either may be nil otherwise.
func New(of SnapshotSource, blobs Blobs, maker Maker) *Document {
	of.Retain()
	return &Document{source: of, blobs: blobs, maker: maker}
}

// OfText returns a document of literal text.
func OfText(of SnapshotSource, text []byte) *Document {
	d := New(of, nil, nil)
	d.AddText(string(text))
	return d
}

// SetResolved records that r resolved the document's references to blobs, and whether it has any. The caller adds no more
// pieces.
func (d *Document) SetResolved(r *Resolver, found bool) {
	d.hasBlobs = d.blobs != nil && found
	d.unresolved = r.skipped
	d.pieces = slices.Clip(d.pieces)
}

// SetHasBlobs records that the document depends on blobs although it has no piece of one.
func (d *Document) SetHasBlobs() { d.hasBlobs = true }

// Unresolved returns the number of blob references left for want of room.
func (d *Document) Unresolved() int { return d.unresolved }

// add adds a piece at the end, as a part of the last one if it can. It sets the offset of p, and ignores an empty piece.
func (d *Document) add(p piece) {
	if p.size == 0 {
		return
	}
	var last *piece
	if len(d.pieces) > 0 {
		last = &d.pieces[len(d.pieces)-1]
	}
	if last != nil && p.follows(last) {
		last.text += p.text
		last.size += p.size
	} else {
		p.at = d.size
		d.pieces = append(d.pieces, p)
	}
	d.size += p.size
}

// isRange reports whether p is a range of the session file.
func (p *piece) isRange() bool { return p.text == "" && p.number == 0 && p.blob == nil }

// maxJoined bounds a text that others are joined to, in bytes: each time the text is copied.
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

// AddMade adds a piece of size bytes that the Maker makes to the end of the document. n is its
// number for the Maker, at least 1.
func (d *Document) AddMade(n int32, size int64) { d.add(piece{size: size, number: n}) }

// AddEdited adds the range of the session file at off, which has the content text, with edits applied. The
// parts between the edits are read from the file with the document. AddEdited sorts the edits.
func (d *Document) AddEdited(off int64, text []byte, edits rawjson.Edits) {
	addUnchanged := func(start, end int) {
		d.AddRange(off+int64(start), int64(end-start))
	}
	at := 0
	for _, e := range edits.InOrder() {
		addUnchanged(at, e.Start)
		if e.Blob != nil {
			d.AddBlob(e.Blob)
		} else {
			d.AddText(e.Text)
		}
		at = e.End
	}
	addUnchanged(at, len(text))
}

// Size returns the document's size in bytes.
func (d *Document) Size() int64 { return d.size }

// HasBlobs reports whether the document depends on blobs, including missing ones.
func (d *Document) HasBlobs() bool { return d.hasBlobs }

// Memory returns the approximate size in bytes of the document without its snapshot.
func (d *Document) Memory() int64 {
	memory := int64(len(d.pieces)) * pieceBytes
	for _, p := range d.pieces {
		memory += int64(len(p.text))
	}
	return memory
}

// OnClose sets the function that Close calls.
func (d *Document) OnClose(f func()) { d.closed = f }

// Close releases the snapshot.
func (d *Document) Close() {
	d.source.Release()
	if d.closed != nil {
		d.closed()
	}
}

// ReadAt implements io.ReaderAt. The error wraps storage.ErrStale if the content no longer exists.
func (d *Document) ReadAt(p []byte, off int64) (n int, err error) {
	first := sort.Search(len(d.pieces), func(i int) bool {
		return d.pieces[i].at+d.pieces[i].size > off
	})
	for _, piece := range d.pieces[first:] {
		if n == len(p) {
			break
		}
		skip := off + int64(n) - piece.at
		room := int64(len(p) - n)
		length := int(min(room, piece.size-skip))
		err := d.readPiece(piece, p[n:n+length], skip)
		if err != nil {
			return n, err
		}
		n += length
	}
	err = d.check(p[:n], off, first)
	if err != nil {
		return 0, err
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// check verifies the text p, read from off on, if the file has changed since it was indexed: each
// entry that p shows a part of must have its text still. first is the number of the piece at off.
func (d *Document) check(p []byte, off int64, first int) error {
	now, changed, err := d.source.Changed()
	if err != nil || !changed {
		return err
	}
	d.making.Lock()
	defer d.making.Unlock()
	end := off + int64(len(p))
	for _, piece := range d.pieces[first:] {
		from := max(piece.at, off)
		to := min(piece.at+piece.size, end)
		if from >= to {
			break
		}
		if !piece.isRange() {
			continue
		}
		text := p[from-off : to-off]
		inFile := piece.off + from - piece.at
		err := d.source.CheckRange(text, inFile, now, &d.verified)
		if err != nil {
			return err
		}
	}
	return nil
}

// readPiece fills p from an offset of a piece, which has as many bytes behind it. The error wraps storage.ErrStale for a
// blob that is gone.
func (d *Document) readPiece(piece piece, p []byte, off int64) error {
	switch {
	case piece.text != "":
		copy(p, piece.text[off:])
		return nil
	case piece.number != 0:
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

// readMade fills p from a piece of the Maker. It caches the last piece, since readers usually ask
// for parts of a piece in order.
func (d *Document) readMade(piece piece, p []byte, off int64) error {
	d.making.Lock()
	defer d.making.Unlock()
	isCached := d.textAt == piece.at && len(d.text) > 0
	if !isCached {
		text, err := d.maker.Make(d.text[:0], piece.number)
		if err == nil && int64(len(text)) != piece.size {
			// The checksums of the entries matched, so this is a bug.
			err = fmt.Errorf("a part of a document has %d bytes and was measured as %d", len(text), piece.size)
		}
		if err != nil {
			d.text = nil
			return err
		}
		d.text = text
		d.textAt = piece.at
	}
	copy(p, d.text[off:])
	return nil
}

// readBase64 fills p from offset off of the base64 encoding of obj, which has size bytes. Four characters
// encode three bytes. For the characters from 5 up to 11 it reads the bytes from 3 up to 9, which are the
// characters from 4 up to 12, and copies these from the second one on.
func readBase64(obj io.ReaderAt, size int64, p []byte, off int64) error {
	firstGroup := off / 4
	groupsEnd := (off + int64(len(p)) + 3) / 4 // rounded up
	start := firstGroup * 3
	end := min(groupsEnd*3, size) // the last group may be shorter
	raw := make([]byte, end-start)
	err := storage.ReadFull(obj, raw, start)
	if err != nil {
		return err
	}
	enc := make([]byte, base64.StdEncoding.EncodedLen(len(raw)))
	base64.StdEncoding.Encode(enc, raw)
	copy(p, enc[off%4:])
	return nil
}

// An open file switches to a newer version of its content only if that begins with the whole older
// content. Continues compares their pieces without rendering either.

// Continues reports whether the content of d begins with old's. The Maker compares the
// content after the leading text; without one, only documents of text continue each other.
func (d *Document) Continues(old *Document) bool {
	if d.size < old.size {
		return false
	}
	for i, before := range old.pieces {
		if i >= len(d.pieces) {
			return false
		}
		now := d.pieces[i]
		isEndOfTexts := before.text == ""
		if isEndOfTexts { // the Maker compares the rest
			isSamePlace := now.text == "" && now.at == before.at
			return isSamePlace && d.maker != nil && d.maker.Continues(old.maker)
		}
		isLast := i+1 == len(old.pieces)
		continues := now.text == before.text
		if isLast {
			continues = strings.HasPrefix(now.text, before.text)
		}
		if !continues {
			return false
		}
	}
	return true
}

package sessioncore

import (
	"encoding/base64"
	"fmt"
	"io"
	"sort"
	"sync"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// Document is a generated file: a list of pieces, most of which lie in the session file or in blobs
// and are read when they are asked for, or are made then. So its size is exact and its content is never held. It shows
// one snapshot, which it keeps until Close.
type Document struct {
	snap   *Snapshot
	blobs  Blobs
	pieces []piece
	size   int64

	hasBlobs bool

	maker  Maker
	making sync.Mutex // guards what follows
	made   []byte     // the piece that was made last
	madeAt int64      // where in the document it begins
}

// Maker makes the pieces of a Document of which only the sizes are kept.
type Maker interface {
	// Make appends the text of a piece to dst. The first piece that AddMade added is 1. The text of a piece is always
	// the same.
	Make(dst []byte, piece int32) ([]byte, error)
	// Continues reports whether the text of all pieces begins with all that earlier makes.
	Continues(earlier Maker) bool
}

// Blobs is the blob store as documents read it. hash is 64 lower-case hex digits.
type Blobs interface {
	// Size returns a blob's size in bytes, or an error that wraps fs.ErrNotExist.
	Size(hash string) (int64, error)
	// Open opens a blob for reading.
	Open(hash string) (storage.Object, error)
}

// piece is a part of a document: text of its own, or a range of the session file, or a blob, or what the
// maker makes.
type piece struct {
	at   int64  // where it begins in the document
	off  int64  // of a range: where it begins in the session file
	size int64  // in the document, in bytes
	text string // text of its own, "" for a range or a blob
	blob *rawjson.Blob
	made int32 // the maker's number for it, 0 for none
}

func newDocument(s *Snapshot, blobs Blobs) *Document {
	s.Retain()
	return &Document{snap: s, blobs: blobs}
}

// NewMadeDocument returns a document of a snapshot to which AddText and AddMade add pieces, before anybody reads it.
// maker makes those that AddMade adds.
func NewMadeDocument(s *Snapshot, maker Maker) *Document {
	d := newDocument(s, nil)
	d.maker = maker
	return d
}

// AddText adds a text to the end of a document.
func (d *Document) AddText(text string) { d.text(text) }

// AddMade adds a piece of size bytes to the end of a document, which its Maker makes.
func (d *Document) AddMade(n int32, size int64) { d.add(piece{size: size, made: n}) }

// textDocument is a document of text alone.
func textDocument(s *Snapshot, text []byte) *Document {
	d := newDocument(s, nil)
	d.text(string(text))
	return d
}

func (d *Document) add(p piece) {
	if p.size == 0 {
		return
	}
	if n := len(d.pieces); n > 0 && p.text != "" && d.pieces[n-1].text != "" {
		last := &d.pieces[n-1]
		last.text += p.text
		last.size += p.size
	} else {
		p.at = d.size
		d.pieces = append(d.pieces, p)
	}
	d.size += p.size
}

func (d *Document) text(text string)          { d.add(piece{size: int64(len(text)), text: text}) }
func (d *Document) fileRange(off, size int64) { d.add(piece{off: off, size: size}) }
func (d *Document) blob(b *rawjson.Blob)      { d.add(piece{size: b.Size(), blob: b}) }

// Size returns the document's size in bytes.
func (d *Document) Size() int64 { return d.size }

// HasBlobs reports whether the document depends on blobs, also on such as are not there.
func (d *Document) HasBlobs() bool { return d.hasBlobs }

// Close lets the snapshot go.
func (d *Document) Close() { d.snap.Release() }

// ReadAt implements io.ReaderAt. Errors: ErrStale where what it shows is not there any more.
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
	if err := d.snap.unchanged(); err != nil {
		return 0, err
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (d *Document) readPiece(piece piece, p []byte, off int64) error {
	switch {
	case piece.text != "":
		copy(p, piece.text[off:])
		return nil
	case piece.made != 0:
		return d.readMade(piece, p, off)
	case piece.blob == nil:
		return storage.ReadFull(d.snap.pin.obj, p, piece.off+off)
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

// readMade fills p from a piece that is made; readers ask for its parts one after the other.
func (d *Document) readMade(piece piece, p []byte, off int64) error {
	d.making.Lock()
	defer d.making.Unlock()
	if d.madeAt != piece.at || len(d.made) == 0 {
		text, err := d.maker.Make(d.made[:0], piece.made)
		if err == nil && int64(len(text)) != piece.size {
			// Entries are compared with their checksums, so this tells of a bug.
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

// readBase64 fills p with the base64 of obj, a file of that many bytes, from off on.
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

// edited adds a range of the session file, of which text is the content, with edits made to it.
func (d *Document) edited(off int64, text []byte, edits rawjson.Edits) {
	at := 0
	for _, e := range edits.InOrder() {
		d.fileRange(off+int64(at), int64(e.Start-at))
		if e.Blob != nil {
			d.blob(e.Blob)
		} else {
			d.text(e.Text)
		}
		at = e.End
	}
	d.fileRange(off+int64(at), int64(len(text)-at))
}

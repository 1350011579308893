package sessioncore

import (
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"slices"
	"sort"
	"sync"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// Document is a generated file: a list of pieces, most of which are ranges of the session file, blobs, or texts
// made on demand. Its size is exact, and its content is never held. It shows one snapshot, which it references
// until Close. It is safe for concurrent use.
type Document struct {
	snap   *Snapshot
	blobs  Blobs
	pieces []piece
	size   int64

	closed     func() // see OnClose; nil for nothing
	hasBlobs   bool
	copied     []string // hashes of the blobs whose content is literal text
	unresolved int      // number of references to blobs that there was no room for

	maker  Maker
	making sync.Mutex // guards the fields below
	made   []byte     // text of the last piece that was made
	madeAt int64      // offset of that piece in the document
	known  checkedEntry
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

func newDocument(s *Snapshot, blobs Blobs) *Document {
	s.Retain()
	return &Document{snap: s, blobs: blobs}
}

// NewMadeDocument returns an empty document of a snapshot. The caller adds pieces with AddText and AddMade before
// the document is read. maker makes the pieces of AddMade.
func NewMadeDocument(s *Snapshot, maker Maker) *Document {
	d := newDocument(s, nil)
	d.maker = maker
	return d
}

// NewDocument returns an empty document of a snapshot. The caller adds pieces before the document is read. blobs has
// those of AddBlob and AddEdited, maker makes those of AddMade; either may be nil where none is added.
func NewDocument(s *Snapshot, blobs Blobs, maker Maker) *Document {
	d := newDocument(s, blobs)
	d.maker = maker
	return d
}

// AddBlob adds the content of a blob to the end of the document.
func (d *Document) AddBlob(b *rawjson.Blob) { d.blob(b) }

// AddEdited adds part, which is a part of the text of entry e as EntryText returned it, with edits applied to it. What
// is not edited is read from the file when the document is read.
func (d *Document) AddEdited(e Entry, text, part rawjson.Value, edits rawjson.Edits) {
	d.edited(d.snap.records[e].off+int64(part.OffsetIn(text)), part, edits)
}

// SetResolved says that the references to blobs in the document were resolved by r, and any says that there are some.
func (d *Document) SetResolved(r *Resolver, any bool) {
	d.hasBlobs = d.blobs != nil && any
	d.unresolved, d.copied = r.left, r.copied
}

// AddText adds text to the end of the document.
func (d *Document) AddText(text string) { d.text(text) }

// AddMade adds a piece of size bytes, which the Maker makes, to the end of the document. n is the piece's number
// for the Maker, at least 1.
func (d *Document) AddMade(n int32, size int64) { d.add(piece{size: size, made: n}) }

// NewTextDocument returns a document of literal text.
func NewTextDocument(s *Snapshot, text []byte) *Document {
	d := newDocument(s, nil)
	d.text(string(text))
	return d
}

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

// follows reports whether p can be a part of the piece before it.
func (p *piece) follows(last *piece) bool {
	if p.text != "" {
		return last.text != ""
	}
	return p.isRange() && last.isRange() && p.off == last.off+last.size
}

func (d *Document) text(text string)          { d.add(piece{size: int64(len(text)), text: text}) }
func (d *Document) fileRange(off, size int64) { d.add(piece{off: off, size: size}) }
func (d *Document) blob(b *rawjson.Blob)      { d.add(piece{size: b.Size(), blob: b}) }

// Size returns the document's size in bytes.
func (d *Document) Size() int64 { return d.size }

// HasBlobs reports whether the document depends on blobs, including missing ones.
func (d *Document) HasBlobs() bool { return d.hasBlobs }

// BlobHashes returns the hashes of the blobs that the document shows, each once.
func (d *Document) BlobHashes() []string {
	seen := map[string]bool{}
	for _, hash := range d.copied {
		seen[hash] = true
	}
	for _, p := range d.pieces {
		if p.blob != nil {
			seen[p.blob.Hash] = true
		}
	}
	return slices.Collect(maps.Keys(seen))
}

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
	d.snap.Release()
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
	st, err := d.snap.pin.obj.Stat()
	if err != nil || st.Token == d.snap.stat.Token {
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
		if err := d.snap.checkRange(p[from-off:to-off], piece.off+from-piece.at, st.Token, &d.known); err != nil {
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

// edited adds the range of the session file at off, whose content is text, with edits applied to it.
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

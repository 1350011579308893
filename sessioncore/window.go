package sessioncore

import (
	"io"
	"sync"

	"sessionfs/sessioncore/storage"
)

// windowSize is how much of a file's end is read at once before it is looked at: the bytes that are compared
// and the few lines that a client adds at a time. More growth is read in the loader's pieces.
const windowSize = 32 << 10

// window is an open file of which one part was read already. It is for one goroutine.
type window struct {
	obj  io.ReaderAt
	off  int64 // of text in the file
	text []byte
	buf  *[windowSize]byte // that text is in; nil for none
}

var windowBuffers = sync.Pool{New: func() any { return new([windowSize]byte) }}

// newWindow reads a file from off to end, unless that is too much.
func newWindow(obj io.ReaderAt, off, end int64) (*window, error) {
	w := &window{obj: obj, off: off}
	if end-off > windowSize {
		return w, nil
	}
	w.buf = windowBuffers.Get().(*[windowSize]byte)
	w.text = w.buf[:end-off]
	if err := storage.ReadFull(obj, w.text, off); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// close ends the use of the window.
func (w *window) close() {
	if w.buf != nil {
		windowBuffers.Put(w.buf)
		w.buf, w.text = nil, nil
	}
}

// ReadAt implements io.ReaderAt.
func (w *window) ReadAt(p []byte, off int64) (int, error) {
	at := off - w.off
	if at < 0 || at+int64(len(p)) > int64(len(w.text)) {
		return w.obj.ReadAt(p, off)
	}
	return copy(p, w.text[at:]), nil
}

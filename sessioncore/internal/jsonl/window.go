package jsonl

import (
	"io"
	"sync"

	"sessionfs/sessioncore/storage"
)

// windowSize is how much of a file's end is read at once before it is looked at: the bytes that are compared
// and the few lines that a client adds at a time. More growth is read in the loader's pieces.
const windowSize = 32 << 10

// Window is an open file of which one part was read already. It is for one goroutine.
type Window struct {
	obj  io.ReaderAt
	off  int64 // of text in the file
	text []byte
	buf  *[windowSize]byte // that text is in; nil for none
}

var windowBuffers = sync.Pool{New: func() any { return new([windowSize]byte) }}

// NewWindow reads a file from off to end, unless that is too much.
func NewWindow(obj io.ReaderAt, off, end int64) (*Window, error) {
	w := &Window{obj: obj, off: off}
	if end-off > windowSize {
		return w, nil
	}
	w.buf = windowBuffers.Get().(*[windowSize]byte)
	w.text = w.buf[:end-off]
	if err := storage.ReadFull(obj, w.text, off); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// Close ends the use of the window.
func (w *Window) Close() {
	if w.buf != nil {
		windowBuffers.Put(w.buf)
		w.buf, w.text = nil, nil
	}
}

// ReadAt implements io.ReaderAt.
func (w *Window) ReadAt(p []byte, off int64) (int, error) {
	at := off - w.off
	if at < 0 || at+int64(len(p)) > int64(len(w.text)) {
		return w.obj.ReadAt(p, off)
	}
	return copy(p, w.text[at:]), nil
}

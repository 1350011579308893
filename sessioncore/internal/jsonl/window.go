package jsonl

import (
	"io"
	"sync"

	"sessionfs/sessioncore/storage"
)

// windowSize is the maximum size of the end of a file that is read at once: the bytes that are compared and the few
// lines that a client adds at a time. More growth is read in chunks by the loader.
const windowSize = 32 << 10

// Window is an open file of which one part has already been read. It is not safe for concurrent use.
type Window struct {
	obj  io.ReaderAt
	off  int64 // of text in the file
	text []byte
	buf  *[windowSize]byte // the buffer of text; nil for none
}

var windowBuffers = sync.Pool{New: func() any { return new([windowSize]byte) }}

// NewWindow returns a window on a file, and reads it from off to end unless that is more than windowSize. Callers
// must call Close.
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

// Close releases the buffer. The file stays open.
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

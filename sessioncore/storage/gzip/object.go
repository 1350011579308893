package gzip

import (
	"fmt"
	"io"
	"io/fs"
	"sync/atomic"

	"sessionfs/sessioncore/storage"
)

// object is an open compressed file that reads as what is in it.
type object struct {
	storage.UnsupportedObject
	content *content
	storage *Storage
	file    string
	known   measured // when it was opened
	closed  atomic.Bool
}

var _ storage.Object = (*object)(nil)

// Stat implements storage.Object. The size stays what it was said to be when the file was opened.
func (o *object) Stat() (storage.Stat, error) {
	if o.closed.Load() {
		return storage.Stat{}, fs.ErrClosed
	}
	st, err := o.content.obj.Stat()
	st.Size = o.known.size
	return st, err
}

// ReadAt implements storage.Object. What reaches the end is read only once everything was unpacked and the checksum was
// right. If the file has another size than it said, the error is storage.ErrStale, and who opens the file again gets the
// right one.
func (o *object) ReadAt(p []byte, off int64) (n int, err error) {
	defer storage.RecoverTo(&err)
	switch {
	case o.closed.Load():
		return 0, fs.ErrClosed
	case off < 0:
		return 0, fmt.Errorf("read at a negative offset: %w", fs.ErrInvalid)
	case o.known.err != nil && off+int64(len(p)) >= o.known.size:
		return 0, o.known.err
	}
	end := o.known.size
	want := p[:max(0, min(int64(len(p)), end-off))]
	to := off + int64(len(want))
	if to >= end {
		to = end + 1 // the checksum comes after the end
	}
	n, now, err := o.content.read(want, off, to)
	if err == nil && to > end && !now.exact {
		if now, err = o.content.settle(); err == nil { // it goes on after what it says is the end
			err = now.err
		}
	}
	if now.exact && !o.known.exact || now.err != nil {
		o.storage.note(o.file, now)
	}
	switch {
	case err != nil:
		return 0, err
	case now.exact && now.size != o.known.size:
		return 0, fmt.Errorf("%w: %s has %d bytes unpacked and not %d, as it says", storage.ErrStale, o.file, now.size, o.known.size)
	case n < len(p):
		return n, io.EOF
	}
	return n, nil
}

// Close implements storage.Object.
func (o *object) Close() error {
	if o.closed.Swap(true) {
		return fs.ErrClosed
	}
	return o.content.release()
}

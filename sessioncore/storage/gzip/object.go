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
	storage *Storage
	obj     storage.Object // the compressed file
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
	st, err := o.obj.Stat()
	st.Size = o.known.size
	return st, err
}

// beginning is what is unpacked of a file for who reads no further, in bytes: a listing reads so much of each.
const beginning = 4 << 10

// ReadAt implements storage.Object. What lies after the beginning is read only once everything was unpacked and the
// checksum was right. If the file has another size than it said, the error is storage.ErrStale, and who opens the file
// again gets the right one.
func (o *object) ReadAt(p []byte, off int64) (n int, err error) {
	defer storage.RecoverTo(&err)
	end := off + int64(len(p))
	switch {
	case o.closed.Load():
		return 0, fs.ErrClosed
	case off < 0:
		return 0, fmt.Errorf("read at a negative offset: %w", fs.ErrInvalid)
	case len(p) == 0:
		return 0, nil
	case end <= beginning && end < o.known.size:
		err = unpacking(o.obj, o.known.token, func(in io.Reader) error {
			if _, err := io.CopyN(io.Discard, in, off); err != nil {
				return err
			}
			_, err := io.ReadFull(in, p)
			return err
		})
		if err != nil {
			return 0, err
		}
		return len(p), nil
	case o.known.err != nil:
		return 0, o.known.err
	}
	o.storage.cache.with(o.known.token, o.obj, func(c *content) {
		var now measured
		if now, err = o.storage.learn(o.file, c); err != nil {
			return
		}
		if now.size != o.known.size {
			err = fmt.Errorf("%w: %s has %d bytes unpacked and not %d, as it says", storage.ErrStale, o.file, now.size, o.known.size)
			return
		}
		n, err = c.ReadAt(p, off)
	})
	return n, err
}

// Close implements storage.Object.
func (o *object) Close() error {
	if o.closed.Swap(true) {
		return fs.ErrClosed
	}
	return o.obj.Close()
}

package gzip

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"sessionfs/sessioncore/storage"
)

// content is what is in a compressed file, as far as it was unpacked. All objects of one state of a file share it. What
// was unpacked can be taken away at any time, and is then unpacked again when it is needed.
type content struct {
	cache *cache
	token storage.Token // of the compressed file
	limit int64

	obj  storage.Object // the compressed file; nil if refs is 0. Guarded by cache.mu; fixed while there are objects
	refs int            // objects; guarded by cache.mu

	lastUsed atomic.Int64 // ns since the epoch
	whole    atomic.Bool  // everything was unpacked

	// mu guards the fields below. Who only reads what is there holds it for reading. Lock order: content.mu, cache.mu.
	mu   sync.RWMutex
	data kept
	in   *unpacker // nil before the beginning and after the end
	err  error     // why it cannot be unpacked further
}

// read fills p from off, and unpacks up to the offset to at least, which must be no less than what p needs. now is what
// is known of the file then. n is less than len(p) only at the end, or with an error.
func (c *content) read(p []byte, off, to int64) (n int, now measured, err error) {
	c.lastUsed.Store(time.Now().UnixNano())
	c.mu.RLock()
	if c.data.size >= to || c.whole.Load() {
		defer c.mu.RUnlock()
		return c.readKept(p, off)
	}
	c.mu.RUnlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.fill(to); err != nil {
		return 0, c.measured(), err
	}
	return c.readKept(p, off)
}

// readKept fills p from what was unpacked. Callers must hold c.mu.
func (c *content) readKept(p []byte, off int64) (int, measured, error) {
	n, err := c.data.readAt(p[:max(0, min(int64(len(p)), c.data.size-off))], off)
	if err == io.EOF {
		err = nil
	}
	return n, c.measured(), err
}

// measured returns what is known of the file. Callers must hold c.mu.
func (c *content) measured() measured {
	m := measured{token: c.token, size: c.data.size, exact: c.whole.Load(), err: c.err}
	if m.err != nil {
		m.size++ // what is damaged is there, and cannot be read
	}
	return m
}

// settle unpacks the file to its end and returns what is known of it then. The error is not that of a damaged file: what
// comes before the damage can be read.
func (c *content) settle() (measured, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.fill(maxUnpacked + 1)
	m := c.measured()
	if m.err != nil {
		err = nil
	}
	return m, err
}

// step is how much is unpacked at once.
const step = 256 << 10

var buffers = sync.Pool{New: func() any { return new([step]byte) }}

// fill unpacks up to the offset to, or to the end. Callers must hold c.mu.
func (c *content) fill(to int64) error {
	if c.whole.Load() || c.data.size >= to {
		return nil
	}
	if c.err != nil {
		return c.err
	}
	if c.in == nil {
		if err := c.unchanged(); err != nil {
			return err
		}
		c.in = unpack(c.obj, c.token.Size)
	}
	buf := buffers.Get().(*[step]byte)
	defer buffers.Put(buf)
	err := c.unpack(buf[:], to)
	if changed := c.unchanged(); changed != nil {
		c.drop() // it may be of two states of the file
		return changed
	}
	if err == io.EOF {
		c.whole.Store(true)
		c.end()
		return nil
	}
	var broken *brokenError
	if errors.As(err, &broken) {
		c.err = err
		c.end()
	} else if err != nil {
		c.drop() // the position in the file is lost
	}
	return err
}

// unchanged returns an error if the compressed file was overwritten since it was opened.
func (c *content) unchanged() error {
	st, err := c.obj.Stat()
	// The time of the last change is also that of a change of the name.
	if err == nil && (!st.SameObject(c.token) || st.Size != c.token.Size || st.Modified != c.token.Modified) {
		err = fmt.Errorf("%w: the archive was overwritten", storage.ErrStale)
	}
	return err
}

// unpack appends to what was unpacked until it has to bytes. The error is io.EOF at the end.
func (c *content) unpack(buf []byte, to int64) error {
	for c.data.size < to {
		n, err := io.ReadFull(c.in, buf[:min(step, to-c.data.size)])
		if c.data.size+int64(n) > c.limit {
			return tooLarge(c.token.Size, c.limit)
		}
		if n > 0 {
			if err := c.cache.add(c, buf[:n]); err != nil {
				return err
			}
		}
		switch {
		case err == io.ErrUnexpectedEOF: // of ReadFull
			return io.EOF
		case err != nil:
			return err
		}
	}
	return nil
}

// end gives back what is needed to unpack further. Callers must hold c.mu.
func (c *content) end() {
	if c.in != nil {
		c.in.done()
		c.in = nil
	}
}

// drop gives back everything that was unpacked. Callers must hold c.mu.
func (c *content) drop() {
	c.end()
	c.whole.Store(false)
	c.err = nil
	c.cache.clear(c)
}

// release is called when an object is closed. The last one takes along what is not unpacked to its end: it was looked at
// for its first lines.
func (c *content) release() error {
	k := c.cache
	k.mu.Lock()
	c.refs--
	if c.refs > 0 {
		k.mu.Unlock()
		return nil
	}
	obj, unused := c.obj, !c.whole.Load()
	c.obj = nil
	if unused && k.contents[c.token] == c {
		delete(k.contents, c.token)
	}
	k.mu.Unlock()
	if unused {
		c.mu.Lock()
		c.drop()
		c.mu.Unlock()
	}
	return obj.Close()
}

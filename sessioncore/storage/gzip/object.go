package gzip

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sessionfs/sessioncore/spill"
	"sessionfs/sessioncore/storage"
)

const (
	// beginning is how much of a file is unpacked by itself, in bytes: a listing reads no more of it.
	beginning = 64 << 10
	// maxInMemory is how much of one file is kept in memory; more goes to a temporary file, and so does what there is no room
	// for. Most sessions are smaller.
	maxInMemory = 4 << 20
	// keepFor is how long what was unpacked is kept after it was read last.
	keepFor = 5 * time.Minute
)

// object is an open compressed file that reads as what is in it.
type object struct {
	storage *Storage
	obj     storage.Object // the compressed file
	file    string
	known   measured // when it was opened
	closed  atomic.Bool

	mu      sync.Mutex  // guards the fields below; held while the file is unpacked
	content *spill.Text // nil if it is not unpacked
	idle    *time.Timer
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

// Packed returns how large the compressed file is.
func (o *object) Packed() int64 { return o.known.token.Size }

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
		err = o.storage.format.unpacking(o.obj, o.known.token, func(in io.Reader) error {
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
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed.Load() { // meanwhile
		return 0, fs.ErrClosed
	}
	if o.content == nil {
		now, err := o.unpack()
		if err != nil {
			return 0, err
		}
		if now.size != o.known.size {
			o.forget()
			return 0, fmt.Errorf("%w: %s has %d bytes unpacked and not %d, as it says", storage.ErrStale, o.file, now.size, o.known.size)
		}
	}
	o.idle.Reset(keepFor)
	return o.content.ReadAt(p, off)
}

// unpack unpacks the file, and returns what is known of it then. Callers must hold o.mu.
func (o *object) unpack() (measured, error) {
	o.storage.turns <- struct{}{}
	defer func() { <-o.storage.turns }()
	text, err := o.storage.unpack(o.obj, o.known.token, o.known.size)
	known := o.storage.learn(o.file, o.known.token, text.Size(), err)
	if err != nil {
		text.Close()
		return known, err
	}
	o.content, o.idle = text, time.AfterFunc(keepFor, storage.Guarded(o.drop))
	o.storage.keep(o)
	return known, nil
}

// drop gives back what was unpacked. The next reader unpacks it again.
func (o *object) drop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.forget()
}

// forget is drop for callers that hold o.mu.
func (o *object) forget() {
	if o.content == nil {
		return
	}
	o.content.Close()
	o.content = nil
	o.idle.Stop()
	o.storage.forget(o)
}

// keep notes that an object is unpacked.
func (s *Storage) keep(o *object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unpacked[o] = struct{}{}
}

func (s *Storage) forget(o *object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.unpacked, o)
}

// evict gives back unpacked contents, but for those being read at the moment. The next reader unpacks
// it again.
func (s *Storage) evict() {
	s.mu.Lock()
	unpacked := slices.Collect(maps.Keys(s.unpacked))
	s.mu.Unlock()
	for _, o := range unpacked {
		if o.mu.TryLock() {
			o.forget()
			o.mu.Unlock()
		}
	}
}

// Close implements storage.Object.
func (o *object) Close() error {
	if o.closed.Swap(true) {
		return fs.ErrClosed
	}
	o.drop()
	return o.obj.Close()
}

// unpack unpacks a file of about size bytes to its end.
func (s *Storage) unpack(obj storage.Object, token storage.Token, size int64) (*spill.Text, error) {
	limit := s.limitOf(token.Size)
	text := s.texts.New()
	text.Reserve(min(size, limit))
	return text, s.format.unpacking(obj, token, func(in io.Reader) error {
		_, err := io.Copy(text, io.LimitReader(in, limit+1))
		if err == nil && text.Size() > limit {
			err = tooLarge(token.Size, limit)
		}
		return err
	})
}

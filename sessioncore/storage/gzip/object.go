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

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/storage"
)

const (
	// beginning is how many bytes are unpacked by themselves. A listing reads no more.
	beginning = 64 << 10
	// maxInMemory bounds a text in memory. Longer ones, which are rare, go to a file.
	maxInMemory = 4 << 20
	// keepFor is how long a text is kept after its last read.
	keepFor = 5 * time.Minute
)

// object is an open compressed file that reads as its unpacked text.
type object struct {
	storage *Storage
	obj     storage.Object // the compressed file
	file    string
	known   measurement // when it was opened
	closed  atomic.Bool

	mu      sync.Mutex   // guards the fields below; held while the file is unpacked
	content *budget.Text // nil if it is not unpacked
	idle    *time.Timer
}

var _ storage.Object = (*object)(nil)

// Stat implements storage.Object. The size stays as it was at the opening.
func (o *object) Stat() (storage.Stat, error) {
	if o.closed.Load() {
		return storage.Stat{}, fs.ErrClosed
	}
	st, err := o.obj.Stat()
	st.Size = o.known.size
	return st, err
}

// Packed returns the size of the compressed file.
func (o *object) Packed() int64 { return o.known.token.Size }

// ReadAt implements storage.Object. A read beyond the beginning returns bytes only if the whole
// file unpacked with the right checksum. It returns storage.ErrStale if the size differs from the
// stated one, which the next Open then knows.
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
		return o.readBeginning(p, off)
	case o.known.err != nil:
		return 0, o.known.err
	}
	return o.readWhole(p, off)
}

// readBeginning is ReadAt for the beginning of the text. It unpacks no more than that, so that no checksum tells of damage, and
// keeps nothing.
func (o *object) readBeginning(p []byte, off int64) (n int, err error) {
	err = o.storage.format.unpack(o.obj, o.known.token, func(in io.Reader) error {
		_, err := io.CopyN(io.Discard, in, off)
		if err != nil {
			return err
		}
		_, err = io.ReadFull(in, p)
		return err
	})
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// readWhole is ReadAt from the whole text, which is unpacked if it is not kept.
func (o *object) readWhole(p []byte, off int64) (n int, err error) {
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
			o.dropLocked()
			const why = "%w: %s has %d bytes unpacked and not %d, as it says"
			return 0, fmt.Errorf(why, storage.ErrStale, o.file, now.size, o.known.size)
		}
	}
	o.idle.Reset(keepFor)
	return o.content.ReadAt(p, off)
}

// unpack unpacks the file into o.content and measures it. It waits for its turn, since few files are unpacked at once. After an
// error there is no content, and the measurement may have the file's damage. Callers must hold o.mu.
func (o *object) unpack() (measurement, error) {
	s := o.storage
	s.turns <- struct{}{}
	defer func() { <-s.turns }()
	token := o.known.token
	text := s.texts.New()
	text.Reserve(min(o.known.size, s.limitOf(token.Size)))
	size, err := s.unpackTo(text, o.obj, token)
	known := s.learn(o.file, token, size, err)
	if err != nil {
		text.Close()
		return known, err
	}
	o.content = text
	o.idle = time.AfterFunc(keepFor, storage.Guarded(o.drop))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unpacked[o] = struct{}{}
	return known, nil
}

// drop removes the unpacked text. The next read unpacks it again.
func (o *object) drop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dropLocked()
}

// dropLocked is drop for callers that hold o.mu.
func (o *object) dropLocked() {
	if o.content == nil {
		return
	}
	o.content.Close()
	o.content = nil
	o.idle.Stop()
	o.storage.mu.Lock()
	defer o.storage.mu.Unlock()
	delete(o.storage.unpacked, o)
}

// evict drops the texts that nobody reads at the moment. It waits for no reader: the reader may be the one that needs memory.
func (s *Storage) evict() {
	s.mu.Lock()
	unpacked := slices.Collect(maps.Keys(s.unpacked))
	s.mu.Unlock()
	for _, o := range unpacked {
		if o.mu.TryLock() {
			o.dropLocked()
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

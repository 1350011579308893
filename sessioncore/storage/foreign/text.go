package foreign

import (
	"bytes"
	"io"
	"sync"

	"sessionfs/sessioncore/internal/unnamed"
)

const (
	// inMemory is how much of a converted session is kept in memory; more goes to a file without a
	// name.
	inMemory = 1 << 20
	// small is how much is not counted, and not worth a file.
	small = 16 << 10
)

// sink is a part of a session's text, in memory or in a file without a name. It only grows, so
// readers of a version need no lock but for where it is.
type sink struct {
	files *Files

	mu      sync.RWMutex // guards the fields below, but not the bytes in memory and in the file
	memory  []byte
	counted int64         // bytes of memory that are part of the budget
	file    *unnamed.File // nil while all is in memory
	users   int           // versions and the conversion
}

// write adds to the end. If the disk has no room, caches give back some first.
func (s *sink) write(b []byte) error {
	err := s.add(b)
	if err != nil {
		s.files.limit.Evict()
		err = s.add(b)
	}
	return err
}

// add adds all of b to the end, or nothing.
func (s *sink) add(b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil && len(s.memory)+len(b) <= inMemory {
		more := append(s.memory, b...)
		if s.count(int64(cap(more))) {
			s.memory = more
			return nil
		}
	}
	if err := s.toFile(); err != nil {
		return err
	}
	size := s.file.Size()
	_, err := s.file.Write(b)
	if err != nil {
		_ = s.file.Cut(size)
	}
	return err
}

// toFile moves the sink's memory to a file. Callers must hold s.mu.
func (s *sink) toFile() error {
	if s.file != nil {
		return nil
	}
	file, err := unnamed.New(s.files.temporary)
	if err != nil {
		return err
	}
	if _, err := file.Write(s.memory); err != nil {
		_ = file.Close()
		return err
	}
	s.file, s.memory = file, nil
	s.count(0)
	return nil
}

// count makes n bytes of memory part of the budget. It returns false if there is no room. Callers
// must hold s.mu.
func (s *sink) count(n int64) bool {
	if n <= small {
		n = 0
	}
	if s.files.texts.Add(n-s.counted) != nil {
		return false
	}
	s.counted = n
	return true
}

// spill gives the memory back, unless there is no room on the disk. s may be nil.
func (s *sink) spill() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counted > 0 {
		_ = s.toFile()
	}
}

// readAt reads what is there.
func (s *sink) readAt(p []byte, off int64) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.file == nil {
		copy(p, s.memory[off:])
		return nil
	}
	_, err := s.file.ReadAt(p, off)
	return err
}

// use counts a user; the last one to leave closes it. s may be nil.
func (s *sink) use() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users++
}

func (s *sink) leave() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users > 0 {
		return
	}
	s.memory = nil
	s.count(0)
	if s.file != nil {
		_ = s.file.Close()
	}
}

// text is one version of a session's text: what does not change any more, and what may.
type text struct {
	sink   *sink
	stable int64
	tail   *sink // nil if it is empty
	end    int64 // its size
}

func (t *text) size() int64 { return t.stable + t.end }

// use counts a user of both parts.
func (t *text) use() {
	t.sink.use()
	t.tail.use()
}

func (t *text) leave() {
	t.sink.leave()
	t.tail.leave()
}

func (t *text) spill() {
	t.sink.spill()
	t.tail.spill()
}

// ReadAt implements io.ReaderAt.
func (t *text) ReadAt(p []byte, off int64) (n int, err error) {
	if n = int(max(0, min(int64(len(p)), t.stable-off))); n > 0 {
		if err := t.sink.readAt(p[:n], off); err != nil {
			return 0, err
		}
	}
	at := off + int64(n) - t.stable
	if m := int(max(0, min(int64(len(p)-n), t.end-at))); m > 0 && at >= 0 {
		if err := t.tail.readAt(p[n:n+m], at); err != nil {
			return 0, err
		}
		n += m
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// continues reports whether the text begins with that of a version before.
func (t *text) continues(before *text) bool {
	if t.size() < before.size() {
		return false
	}
	size := min(before.end, 64<<10)
	now, was := make([]byte, size), make([]byte, size)
	for at := before.stable; at < before.size(); at += size {
		n := min(size, before.size()-at)
		_, err1 := t.ReadAt(now[:n], at)
		_, err2 := before.ReadAt(was[:n], at)
		if err1 != nil || err2 != nil || !bytes.Equal(now[:n], was[:n]) {
			return false
		}
	}
	return true
}

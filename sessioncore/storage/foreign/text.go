package foreign

import (
	"io"
	"sync"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/internal/unnamed"
)

// inMemory is how much of a converted session is kept in memory; more goes to a file without a name.
const inMemory = 1 << 20

// sink is the part of a session's text that does not change any more. It only grows, so readers of a version need no lock
// but for where it is.
type sink struct {
	temporary string
	hold      budget.Hold

	mu     sync.RWMutex // guards what follows, but not what is in memory and in the file
	memory []byte
	file   *unnamed.File // nil while all is in memory
	users  int           // versions and the conversion
}

// add adds to the end.
func (s *sink) add(b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil && len(s.memory)+len(b) <= inMemory && s.hold.Resize(int64(len(s.memory)+len(b))) == nil {
		s.memory = append(s.memory, b...)
		return nil
	}
	if s.file == nil {
		file, err := unnamed.New(s.temporary)
		if err == nil {
			_, err = file.Write(s.memory)
		}
		if err != nil {
			return err
		}
		s.file, s.memory = file, nil
		s.hold.Close()
	}
	_, err := s.file.Write(b)
	return err
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

// use counts who reads it; the last one to leave closes it.
func (s *sink) use() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users++
}

func (s *sink) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users > 0 {
		return
	}
	s.hold.Close()
	if s.memory = nil; s.file != nil {
		_ = s.file.Close()
	}
}

// text is one version of a session's text: what does not change any more, and what may.
type text struct {
	sink   *sink
	stable int64
	tail   []byte
}

func (t *text) size() int64 { return t.stable + int64(len(t.tail)) }

// ReadAt implements io.ReaderAt.
func (t *text) ReadAt(p []byte, off int64) (n int, err error) {
	if n = int(max(0, min(int64(len(p)), t.stable-off))); n > 0 {
		if err := t.sink.readAt(p[:n], off); err != nil {
			return 0, err
		}
	}
	if at := off + int64(n) - t.stable; n < len(p) && at >= 0 && at < int64(len(t.tail)) {
		n += copy(p[n:], t.tail[at:])
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
	now := make([]byte, len(before.tail))
	_, err := t.ReadAt(now, before.stable)
	return err == nil && string(now) == string(before.tail)
}

package budget

import (
	"io"
	"sync"
)

// Room is the memory and the disk that texts of one kind share. Do not change it once it has a
// text.
type Room struct {
	// Limit evicts caches when the disk is full; it may be nil.
	Limit *Budget
	// Memory counts the texts in memory. A text that it refuses goes to a file.
	Memory Hold
	// Most bounds a text in memory. One of up to Free bytes is not worth a file and not counted.
	Most, Free int64
	// Dir is the directory of the files, "" for the default temporary one.
	Dir string
}

// Text is a text that grows at its end. It is safe for concurrent use with one writer.
type Text struct {
	room *Room

	mu      sync.RWMutex // guards the fields below
	memory  []byte
	counted int64 // bytes of memory that are part of the budget
	file    *File // nil while all is in memory
	users   int
}

// New returns an empty text with one user, which must close it.
func (r *Room) New() *Text { return &Text{room: r, users: 1} }

// Size returns the length of the text in bytes.
func (t *Text) Size() int64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.size()
}

// size is Size for callers that hold t.mu.
func (t *Text) size() int64 {
	if t.file != nil {
		return t.file.size
	}
	return int64(len(t.memory))
}

// InFile reports whether the text is in a file.
func (t *Text) InFile() bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.file != nil
}

// Reserve prepares for a text of n bytes. It returns false if memory has no room for them, or the text is in a file
// already. A text that may not be in memory with n bytes moves to a file.
func (t *Text) Reserve(n int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.file != nil:
		return false
	case n > t.room.Most:
		_ = t.toFile(nil) // the next write reports the error
		return false
	case n <= int64(cap(t.memory)):
		return true
	}
	if !t.count(n) {
		return false
	}
	t.memory = append(make([]byte, 0, n), t.memory...)
	return true
}

// Write appends all of b or nothing. It evicts caches when the disk is full, or once files hold too
// much.
func (t *Text) Write(b []byte) (int, error) {
	hasMoved, err := t.add(b)
	if err != nil {
		t.room.Limit.Evict()
		_, err = t.add(b)
		if err != nil {
			return 0, err
		}
		return len(b), nil
	}
	if hasMoved && FilesFull() {
		t.room.Limit.Evict()
	}
	return len(b), nil
}

// add is Write without eviction. It reports whether the text moved to a file.
func (t *Text) add(b []byte) (moved bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file == nil {
		isInMemory := t.addToMemory(b)
		if isInMemory {
			return false, nil
		}
		return true, t.toFile(b)
	}
	size := t.file.size
	_, err = t.file.Write(b)
	if err != nil {
		_ = t.file.cut(size) // all of b or nothing
	}
	return false, err
}

// addToMemory adds b to a text in memory, and returns false if there is no room for it. Callers must hold t.mu.
func (t *Text) addToMemory(b []byte) bool {
	if int64(len(t.memory)+len(b)) > t.room.Most {
		return false
	}
	more := append(t.memory, b...)
	hasRoom := t.count(int64(cap(more)))
	if hasRoom {
		t.memory = more
	}
	return hasRoom
}

// toFile moves a text in memory to a file, with more bytes, or leaves it as it is. Callers must
// hold t.mu.
func (t *Text) toFile(more []byte) error {
	file, err := newFile(t.room.Dir)
	if err != nil {
		return err
	}
	for _, part := range [][]byte{t.memory, more} {
		_, err := file.Write(part)
		if err != nil {
			file.close()
			return err
		}
	}
	t.file = file
	t.memory = nil
	t.count(0)
	return nil
}

// count counts n bytes of memory in the budget. It returns false if there is no room. Callers must
// hold t.mu.
func (t *Text) count(n int64) bool {
	if n <= t.room.Free {
		n = 0
	}
	err := t.room.Memory.Add(n - t.counted)
	if err != nil {
		return false
	}
	t.counted = n
	return true
}

// Spill moves a counted text to a file if the disk has room. t may be nil.
func (t *Text) Spill() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counted > 0 {
		_ = t.toFile(nil)
	}
}

// Cut removes all but the first n bytes. There must be as many.
func (t *Text) Cut(n int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file != nil {
		return t.file.cut(n)
	}
	t.memory = t.memory[:n]
	return nil
}

// ReadAt implements io.ReaderAt.
func (t *Text) ReadAt(p []byte, off int64) (int, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.file != nil {
		return t.file.file.ReadAt(p, off)
	}
	begin := min(off, int64(len(t.memory)))
	n := copy(p, t.memory[begin:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Retain adds a user, which must close the text. t may be nil.
func (t *Text) Retain() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.users++
}

// Close removes the text when its last user calls it. t may be nil.
func (t *Text) Close() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.users--
	if t.users > 0 {
		return
	}
	t.memory = nil
	t.count(0)
	if t.file != nil {
		t.file.close()
	}
}

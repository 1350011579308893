package postgres

import (
	"container/list"
	"crypto/sha256"
	"hash/maphash"
	"io"
	"sync"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/spill"
)

const (
	// maxInMemory is how long a row is at most that is kept in memory, and maxMemory how much is in all: of most rows a list
	// reads the beginning once.
	maxInMemory, maxMemory = 2 << 20, 12 << 20
	// maxDisk bounds what is kept in files, each of which counts as maxInMemory at least. One that is in use may be larger.
	maxDisk = 1 << 30
)

// kept is the contents that are kept, and how much they take. What was used least recently is taken away first.
type kept struct {
	mu           sync.Mutex // guards the fields below, and the keeping of each content
	hold         budget.Hold
	memory, disk int64     // bytes
	order        list.List // of *content; the first was used last
}

// keeping is what a content takes. It is guarded by kept.mu.
type keeping struct {
	at           *list.Element // in kept.order; nil if nothing is kept
	memory, disk int64
}

// use notes that a content was read.
func (k *kept) use(c *content) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c.at != nil {
		k.order.MoveToFront(c.at)
	}
}

// reserve makes room in memory for a content of n bytes in all, and takes others away for it. It returns false if the content
// belongs into a file.
func (k *kept) reserve(c *content, n int64) bool {
	if n > maxInMemory {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for k.memory+n-c.memory > maxMemory || k.hold.Resize(k.memory+n-c.memory) != nil {
		if !k.evict(c, false) {
			return false
		}
	}
	k.count(c, n, 0)
	return true
}

// set notes how large a content is, and takes others away for it.
func (k *kept) set(c *content, n int64, inFile bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if inFile {
		k.count(c, 0, max(n, maxInMemory))
	} else {
		k.count(c, n, 0)
	}
	for k.disk > maxDisk && k.evict(c, true) {
	}
}

// count notes what a content takes, as the last one that was used. Callers must hold k.mu.
func (k *kept) count(c *content, memory, disk int64) {
	if c.at == nil {
		c.at = k.order.PushFront(c)
	}
	k.order.MoveToFront(c.at)
	k.memory += memory - c.memory
	k.disk += disk - c.disk
	c.memory, c.disk = memory, disk
	k.hold.Set(k.memory)
}

// evict takes away the content that was used least recently, of those in files or in memory, and that nobody works with.
// Callers must hold k.mu.
func (k *kept) evict(but *content, inFile bool) bool {
	for at := k.order.Back(); at != nil; at = at.Prev() {
		c := at.Value.(*content)
		if c != but && (c.disk > 0) == inFile && c.drop() {
			k.count(c, 0, 0)
			k.order.Remove(c.at)
			c.at = nil
			return true
		}
	}
	return false
}

// drop forgets what is kept, unless somebody works with it.
func (c *content) drop() bool {
	if !c.fetching.TryLock() {
		return false
	}
	defer c.fetching.Unlock()
	if !c.mu.TryLock() {
		return false
	}
	defer c.mu.Unlock()
	if c.version != "" {
		c.dropped = &dropped{version: c.version, n: c.text.n}
		if c.text.file == nil {
			c.dropped.sum, c.dropped.known = maphash.Bytes(droppedSeed, c.text.data[:c.text.n]), true
		}
	}
	if c.text.file != nil {
		c.text.file.Close()
	}
	c.text, c.version, c.whole = text{}, "", false
	c.length.Store(0)
	return true
}

// evictIdle gives back the memory that nobody works with, and files while they are too many.
func (k *kept) evictIdle() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for k.evict(nil, false) || spill.Full() && k.evict(nil, true) {
	}
}

// close gives all back.
func (k *kept) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for k.evict(nil, true) {
	}
	k.hold.Close()
}

// text is the first n bytes of a content: in memory, or in a file that has no name.
type text struct {
	n    int64
	data []byte
	file *spill.Text
}

// readAt reads what there is at off.
func (t *text) readAt(p []byte, off int64) (int, error) {
	if off >= t.n {
		return 0, nil
	}
	p = p[:min(int64(len(p)), t.n-off)]
	if t.file != nil {
		return t.file.ReadAt(p, off)
	}
	return copy(p, t.data[off:]), nil
}

// add adds to the end.
func (t *text) add(b []byte) (err error) {
	if t.file != nil {
		_, err = t.file.Write(b)
	} else {
		t.data = append(t.data, b...)
	}
	t.n += int64(len(b))
	return err
}

// sum returns the hash of the text, as the server has it.
func (t *text) sum() ([]byte, error) {
	hash := sha256.New()
	err := t.writeTo(hash)
	return hash.Sum(nil), err
}

func (t *text) writeTo(w io.Writer) (err error) {
	if t.file == nil {
		_, err = w.Write(t.data[:t.n])
	} else {
		_, err = io.Copy(w, io.NewSectionReader(t.file, 0, t.n))
	}
	return err
}

// toFile makes a text one in a file, with what is known.
func (t *text) toFile(dir string, known text) (err error) {
	if t.file == nil {
		t.file = (&spill.Room{Dir: dir}).New()
		_, err = t.file.Write(known.data)
	}
	return err
}

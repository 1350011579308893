package agents

import (
	"bytes"
	"sync"
	"time"

	"sessionfs/sessioncore/storage"
)

// Cached has values of files or directories, by name. It is safe for concurrent use.
type Cached[T any] struct {
	// OfBeginning says that a value is of a file's beginning, which stays as the file changes.
	OfBeginning bool

	mu     sync.Mutex // guards values
	values map[string]storage.Cached[T]
}

// Get returns the value of a file. It calls read if the file is new or changed. It caches no error.
func (c *Cached[T]) Get(files storage.Files, name string, read func(storage.Stat) (T, error)) (value T, err error) {
	st, err := files.Stat(name)
	if err != nil {
		return value, err
	}
	return c.Of(name, st, func() (T, error) {
		return read(st)
	})
}

// OfHead is Get for a value of the first bytes of a file, of which read gets at most so many, or nil if they cannot be
// read. A file without a cached value is opened at once: on a slow system a Stat before that would cost as much.
func (c *Cached[T]) OfHead(files storage.Files, name string, most int, read func(head []byte) (T, error)) (value T, err error) {
	if c.has(name) {
		st, err := files.Stat(name)
		if err != nil {
			return value, err
		}
		known, ok := c.valueOf(name, st)
		if ok {
			return known, nil
		}
	}
	obj, err := files.Open(name)
	if err != nil {
		return value, err
	}
	defer obj.Close()
	st, err := obj.Stat()
	if err != nil {
		return value, err
	}
	return c.Of(name, st, func() (T, error) {
		head := make([]byte, min(int64(most), st.Size))
		err := storage.ReadFull(obj, head, 0)
		if err != nil {
			head = nil
		}
		return read(head)
	})
}

// has reports whether a value of a file is cached, of this state or of another one.
func (c *Cached[T]) has(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.values[name]
	return ok
}

// valueOf returns the cached value of a file in the state st.
func (c *Cached[T]) valueOf(name string, st storage.Stat) (value T, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, isCached := c.values[name]
	if !isCached {
		return value, false
	}
	if c.OfBeginning {
		hasGrown := known.Token.SameObject(st.Token) && st.Size >= known.Token.Size
		return known.Value, hasGrown
	}
	return known.Value, known.IsOf(st.Token)
}

// Of is Get for a file in the state st.
func (c *Cached[T]) Of(name string, st storage.Stat, read func() (T, error)) (value T, err error) {
	now := time.Now().UnixNano() // before the read: a later change makes the value old
	value, ok := c.valueOf(name, st)
	if ok {
		return value, nil
	}
	value, err = read()
	if err != nil {
		return value, err
	}
	c.put(name, storage.Cached[T]{
		Value:  value,
		Token:  st.Token,
		ReadAt: now,
	})
	return value, nil
}

// put sets the value of a file.
func (c *Cached[T]) put(name string, value storage.Cached[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.values == nil {
		c.values = map[string]storage.Cached[T]{}
	}
	c.values[name] = value
}

// Texts caches the texts of small files.
type Texts struct{ Cached[[]byte] }

// maxSmall bounds the text read of a small file.
const maxSmall = 1 << 20

// Text returns the text of a file without surrounding blanks, nil if it cannot be read. Of a longer file it returns the first
// maxSmall bytes.
func (c *Texts) Text(files storage.Files, name string) []byte {
	text, _ := c.Get(files, name, func(storage.Stat) ([]byte, error) {
		text, err := storage.ReadFile(files, name, maxSmall)
		return bytes.TrimSpace(text), err
	})
	return text
}

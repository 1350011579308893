package foreign

import (
	"bytes"
	"sync"
	"time"

	"sessionfs/sessioncore/storage"
)

// Cached keeps values that were read from files or directories, each until the file has another state. It
// is safe for concurrent use.
type Cached[T any] struct {
	mu     sync.Mutex // guards values
	values map[string]cachedValue[T]
}

type cachedValue[T any] struct {
	token storage.Token
	value T
}

// Get returns the value of a file, for which it calls read where the file is new or changed.
func (c *Cached[T]) Get(files storage.Files, name string, read func(storage.Stat) (T, error)) (value T, err error) {
	now := time.Now().UnixNano()
	st, err := files.Stat(name)
	if err != nil {
		return value, err
	}
	c.mu.Lock()
	known, ok := c.values[name]
	c.mu.Unlock()
	if ok && known.token == st.Token {
		return known.value, nil
	}
	if value, err = read(st); err == nil && !st.Racy(now) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.values == nil {
			c.values = map[string]cachedValue[T]{}
		}
		c.values[name] = cachedValue[T]{st.Token, value}
	}
	return value, err
}

// ReadFile returns the text of a file, or the first bytes of a longer one.
func ReadFile(files storage.Files, name string, most int64) ([]byte, error) {
	obj, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer obj.Close()
	st, err := obj.Stat()
	if err != nil {
		return nil, err
	}
	text := make([]byte, min(st.Size, most))
	return text, storage.ReadFull(obj, text, 0)
}

// Texts keeps the texts of small files.
type Texts struct{ Cached[[]byte] }

// maxSmall is how much is read of a small file.
const maxSmall = 1 << 20

// Text returns the text of a file without the blanks around it, "" for one that cannot be read.
func (c *Texts) Text(files storage.Files, name string) []byte {
	text, _ := c.Get(files, name, func(storage.Stat) ([]byte, error) {
		text, err := ReadFile(files, name, maxSmall)
		return bytes.TrimSpace(text), err
	})
	return text
}

package memory

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"sessionfs/sessioncore/storage"
)

// MkdirAll implements Storage.
func (m *Storage) MkdirAll(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mkdirAll(dir)
}

// mkdirAll is MkdirAll for callers that hold m.mu.
func (m *Storage) mkdirAll(dir string) error {
	n, err := m.find("mkdir", dir)
	switch {
	case err == nil && n.kind == storage.KindDir:
		return nil
	case err == nil:
		return fmt.Errorf("%w: %s", storage.ErrNotRegular, dir)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := m.mkdirAll(storage.Dir(dir)); err != nil {
		return err
	}
	m.add(dir, m.node(storage.KindDir, storage.DirMode))
	return nil
}

// Append implements Storage.
func (m *Storage) Append(name string, data []byte) (storage.Stat, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.file("append", name)
	if err != nil {
		return storage.Stat{}, err
	}
	if len(data) > 0 {
		n.data = append(n.data, data...)
		m.touch(n)
	}
	return n.stat(), nil
}

// Replace implements Storage. It returns the same errors as dir.Storage.Replace.
func (m *Storage) Replace(name string, expect storage.Token, write func(io.Writer) error) (storage.Stat, error) {
	if err := m.expect(name, expect); err != nil {
		return storage.Stat{}, err
	}
	var content datedBuffer
	if err := write(&content); err != nil {
		return storage.Stat{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.expectLocked(name, expect); err != nil {
		return storage.Stat{}, err
	}
	n := m.put(name, slices.Clip(content.Bytes()))
	if !content.modified.IsZero() {
		n.modified = content.modified.UnixNano()
	}
	return n.stat(), nil
}

// datedBuffer implements storage.Dated.
type datedBuffer struct {
	bytes.Buffer
	modified time.Time
}

func (b *datedBuffer) SetModified(at time.Time) { b.modified = at }

// expect returns an error unless token is that of the file name, or zero if there is no such file.
func (m *Storage) expect(name string, token storage.Token) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.expectLocked(name, token)
}

// expectLocked is expect for callers that hold m.mu.
func (m *Storage) expectLocked(name string, token storage.Token) error {
	if _, err := m.parent("replace", name); err != nil {
		return err
	}
	n := m.nodes[name]
	switch {
	case n == nil && token == storage.Token{}:
		return nil
	case n == nil:
		return fmt.Errorf("%w: %s is gone", storage.ErrStale, name)
	case token == storage.Token{}:
		return fmt.Errorf("%w: %s: %w", storage.ErrStale, name, fs.ErrExist)
	case n.kind != storage.KindFile:
		return fmt.Errorf("%w: %s", storage.ErrNotRegular, name)
	case n.stat().Token != token:
		return fmt.Errorf("%w: %s", storage.ErrStale, name)
	}
	return nil
}

// put makes name stand for a new file with that content. Callers must hold m.mu.
func (m *Storage) put(name string, data []byte) *memNode {
	mode := uint32(storage.FileMode)
	if old := m.nodes[name]; old != nil {
		mode = old.mode
	}
	n := m.node(storage.KindFile, mode)
	n.data = data
	m.add(name, n)
	return n
}

// Overwrite implements Storage. It copies the content, since readers may keep slices of the old one.
func (m *Storage) Overwrite(name string, expect storage.Token, data []byte) (storage.Stat, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.file("overwrite", name)
	if err != nil {
		return storage.Stat{}, err
	}
	if n.stat().Token != expect || len(n.data) < len(data) {
		return storage.Stat{}, fmt.Errorf("%w: %s", storage.ErrStale, name)
	}
	n.data = append(bytes.Clone(data), n.data[len(data):]...)
	m.touch(n)
	return n.stat(), nil
}

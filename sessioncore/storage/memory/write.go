package memory

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"

	"sessionfs/sessioncore/storage"
)

// mkdirAll makes a directory and those above it. Callers must hold m.mu.
func (m *Storage) mkdirAll(dir string) error {
	n, err := m.find("mkdir", dir)
	switch {
	case err == nil && n.kind == storage.KindDir:
		return nil
	case err == nil:
		return fmt.Errorf("%w: %s", syscall.ENOTDIR, dir)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := m.mkdirAll(storage.Dir(dir)); err != nil {
		return err
	}
	m.add(dir, m.node(storage.KindDir, storage.DirMode))
	return nil
}

// Append implements storage.Storage.
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

// Replace implements storage.Journal. It returns the same errors as dir.Storage.Replace.
func (m *Storage) Replace(name string, r storage.Replacement) (storage.Stat, error) {
	if r.Write == nil {
		return m.overwrite(name, r)
	}
	if err := m.expect(name, r.Expect); err != nil {
		return storage.Stat{}, err
	}
	var content bytes.Buffer
	if err := r.Write(&content); err != nil {
		return storage.Stat{}, err
	}
	if r.Ready != nil {
		var err error
		if r.Expect, err = r.Ready(&content); err != nil {
			return storage.Stat{}, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	err := m.expectLocked(name, r.Expect)
	if err == nil {
		err = m.mkdirAll(storage.Dir(name))
	}
	if err != nil {
		return storage.Stat{}, err
	}
	n := m.put(name, slices.Clip(content.Bytes()))
	if !r.Modified.IsZero() {
		n.modified = r.Modified.UnixNano()
	}
	return n.stat(), nil
}

// overwrite is Replace for a file that gets another beginning. It copies the content, since readers may keep slices of the
// old one.
func (m *Storage) overwrite(name string, r storage.Replacement) (storage.Stat, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.file("overwrite", name)
	if err != nil {
		return storage.Stat{}, err
	}
	if n.stat().Token != r.Expect || len(n.data) < len(r.Head) {
		return storage.Stat{}, fmt.Errorf("%w: %s", storage.ErrStale, name)
	}
	n.data = slices.Concat(r.Head, n.data[len(r.Head):], r.Tail)
	m.touch(n)
	return n.stat(), nil
}

// expect returns an error unless token is that of the file name, or zero if there is no such file.
func (m *Storage) expect(name string, token storage.Token) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.expectLocked(name, token)
}

// expectLocked is expect for callers that hold m.mu.
func (m *Storage) expectLocked(name string, token storage.Token) error {
	if _, err := m.parent("replace", name); err != nil && (token != storage.Token{} || !storage.IsMissing(err)) {
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

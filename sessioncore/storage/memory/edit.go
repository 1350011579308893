package memory

import (
	"bytes"
	"fmt"
	"path"
	"time"

	"sessionfs/sessioncore/storage"
)

// This file has the methods of Storage beyond the interface. They do what a shell or a client would do to the files
// of a dir.Storage.

// WriteFile replaces name by a new file, whatever is there, and creates missing directories, like a program that
// knows nothing of tokens and locks. Open objects keep their content.
func (m *Storage) WriteFile(name string, data []byte) error {
	if err := storage.CheckName(name); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.mkdirAll(storage.Dir(name)); err != nil {
		return err
	}
	if n := m.nodes[name]; n != nil && n.kind != storage.KindFile {
		return fmt.Errorf("%w: %s", storage.ErrNotRegular, name)
	}
	m.put(name, bytes.Clone(data))
	return nil
}

// Remove removes a file, or a directory with all its content. Open objects keep their content.
func (m *Storage) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, err := m.parent("remove", name)
	if err != nil {
		return err
	}
	n, err := m.find("remove", name)
	if err != nil {
		return err
	}
	m.forget(name, n)
	delete(dir.children, path.Base(name))
	m.touch(dir)
	return nil
}

// forget removes the names of a node and of everything below it. Callers must hold m.mu.
func (m *Storage) forget(name string, n *memNode) {
	for base, child := range n.children {
		m.forget(name+"/"+base, child)
	}
	delete(m.nodes, name)
}

// Chtimes sets the modification time of a name, for tests of what is sorted by it.
func (m *Storage) Chtimes(name string, modified time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find("chtimes", name)
	if err != nil {
		return err
	}
	m.touch(n)
	n.modified = modified.UnixNano()
	return nil
}

// SetWriters sets the result of Writers, for tests of what happens beside a live client.
func (m *Storage) SetWriters(name string, state storage.WriterState) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writers[name] = state
}

package memory

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"time"

	"sessionfs/sessioncore/storage"
)

// This file holds what Storage offers beyond the interface: what a shell or a client beside us would
// do to the files of a dir.Storage.

// WriteFile puts a new file in the place of name, whatever is there, with the directories that it
// needs, as a program that knows of no tokens and locks would. Old objects keep what they hold.
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

// Remove removes a file, or a directory with all that is in it. Objects keep what they hold.
func (m *Storage) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.parent("remove", name); err != nil {
		return err
	}
	if _, err := m.find("remove", name); err != nil {
		return err
	}
	maps.DeleteFunc(m.nodes, func(other string, _ *memNode) bool {
		return other == name || strings.HasPrefix(other, name+"/")
	})
	m.touch(m.nodes[storage.Dir(name)])
	return nil
}

// Chtimes sets when a name was last modified, for tests of what is sorted by that.
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

// SetWriters makes Writers answer so, for tests of what happens beside a live client.
func (m *Storage) SetWriters(name string, state storage.WriterState) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writers[name] = state
}

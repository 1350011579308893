package memory

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// Storage is a storage.Storage in memory. Use New to create one.
type Storage struct {
	locks storage.FIFOMutexes

	mu      sync.Mutex // guards the fields below and those of every node
	nodes   map[string]*node
	changes int64 // so far; a node has the number of its first one as Inode, and that of its last one as Changed
}

var _ storage.Storage = (*Storage)(nil)

// node is a file or a directory.
type node struct {
	storage.Stat
	data []byte // append-only, so readers may keep a slice of it
}

// newFile returns a file with a content, without a token.
func newFile(data []byte) *node {
	return &node{Stat: storage.Stat{Kind: storage.KindFile, Mode: storage.FileMode}, data: data}
}

// New returns an empty storage.
func New() *Storage {
	m := &Storage{nodes: map[string]*node{}}
	m.nodes[""] = m.touch(&node{Stat: storage.Stat{Kind: storage.KindDir, Mode: storage.DirMode}})
	return m
}

// touch gives a node a new token. Callers must hold m.mu.
func (m *Storage) touch(n *node) *node {
	m.changes++
	if n.Inode == 0 {
		n.Inode = uint64(m.changes)
	}
	n.Size = int64(len(n.data))
	n.Changed = m.changes
	n.Modified = time.Now().UnixNano()
	return n
}

// get returns the node of a name, which must be of a kind; KindOther stands for any. The error wraps fs.ErrNotExist for no node, and
// for a file in the place of a directory. Callers must hold m.mu.
func (m *Storage) get(name string, kind storage.Kind) (*node, error) {
	if name != "" || kind == storage.KindFile {
		err := storage.CheckName(name)
		if err != nil {
			return nil, err
		}
	}
	n := m.nodes[name]
	switch {
	case n == nil, kind == storage.KindDir && n.Kind != kind:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	case kind == storage.KindFile && n.Kind != kind:
		return nil, fmt.Errorf("%w: %s", storage.ErrNotRegular, name)
	}
	return n, nil
}

// put makes a name stand for a new node, and makes missing directories. Callers must hold m.mu.
func (m *Storage) put(name string, n *node) (*node, error) {
	above := storage.Dir(name)
	if m.nodes[above] == nil {
		_, err := m.put(above, &node{Stat: storage.Stat{Kind: storage.KindDir, Mode: storage.DirMode}})
		if err != nil {
			return nil, err
		}
	}
	if m.nodes[above].Kind != storage.KindDir {
		return nil, fmt.Errorf("%w: %s", unix.ENOTDIR, above)
	}
	m.touch(m.nodes[above])
	m.nodes[name] = m.touch(n)
	return n, nil
}

// List implements storage.Files.
func (m *Storage) List(dir string, only []string, f func(storage.Item) bool) error {
	if only != nil {
		return storage.ListOnly(m, dir, only, f)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	_, err := m.get(dir, storage.KindDir)
	if err != nil {
		return err
	}
	for name, n := range m.nodes {
		isIn := name != "" && storage.Dir(name) == dir
		if !isIn {
			continue
		}
		item := storage.Item{
			Name:  path.Base(name),
			Kind:  n.Kind,
			State: func() (storage.Stat, error) { return n.Stat, nil },
		}
		if !f(item) {
			break
		}
	}
	return nil
}

// ReadAhead implements storage.Files: it does nothing.
func (m *Storage) ReadAhead([]string) {}

// with calls do with the node of a name (see get), and returns its state then.
func (m *Storage) with(name string, kind storage.Kind, do func(n *node)) (storage.Stat, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.get(name, kind)
	if err != nil {
		return storage.Stat{}, err
	}
	do(n)
	return n.Stat, nil
}

// Stat implements storage.Files.
func (m *Storage) Stat(name string) (storage.Stat, error) {
	return m.with(name, storage.KindOther, func(*node) {})
}

// Open implements storage.Files.
func (m *Storage) Open(name string) (storage.Object, error) {
	o := &object{storage: m}
	_, err := m.with(name, storage.KindFile, func(n *node) {
		o.node = n
	})
	if err != nil {
		return nil, err
	}
	return o, nil
}

// object is an open file. It stays readable when its name is gone.
type object struct {
	storage *Storage
	*node
}

// ReadAt implements storage.Object. It holds the lock only to get the content, which no writer changes.
func (o *object) ReadAt(p []byte, off int64) (int, error) {
	o.storage.mu.Lock()
	data := o.data
	o.storage.mu.Unlock()
	return bytes.NewReader(data).ReadAt(p, off)
}

func (o *object) Stat() (storage.Stat, error) {
	o.storage.mu.Lock()
	defer o.storage.mu.Unlock()
	return o.node.Stat, nil
}

func (o *object) Close() error { return nil }

// Sync implements storage.Journal. It only checks that the file exists.
func (m *Storage) Sync(name string) error {
	_, err := m.with(name, storage.KindFile, func(*node) {})
	return err
}

// Lock implements storage.Journal.
func (m *Storage) Lock(ctx context.Context, name string) (func() error, error) {
	err := storage.CheckName(name)
	if err != nil {
		return nil, err
	}
	_, err = m.with(storage.Dir(name), storage.KindDir, func(*node) {})
	if err != nil {
		return nil, err
	}
	ctx, cancel := storage.WithLimit(ctx)
	defer cancel()
	_, leave, err := m.locks.Lock(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, name)
	}
	return sync.OnceValue(func() error {
		leave()
		return nil
	}), nil
}

// Append implements storage.Journal.
func (m *Storage) Append(name string, data []byte) (storage.Stat, error) {
	return m.with(name, storage.KindFile, func(n *node) {
		if len(data) > 0 {
			n.data = append(n.data, data...)
			m.touch(n)
		}
	})
}

// Replace implements storage.Journal.
func (m *Storage) Replace(name string, r storage.Replacement) (storage.Stat, error) {
	if r.Write == nil {
		return m.overwrite(name, r)
	}
	var content bytes.Buffer
	err := m.expect(name, r.Expect)
	if err == nil {
		err = r.Write(&content)
	}
	if err == nil && r.Ready != nil {
		r.Expect, err = r.Ready(&content)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		err = m.expectLocked(name, r.Expect)
	}
	if err != nil {
		return storage.Stat{}, err
	}
	n, err := m.put(name, newFile(slices.Clip(content.Bytes()))) // an append must not write into the buffer
	if err != nil {
		return storage.Stat{}, err
	}
	if !r.Modified.IsZero() {
		n.Modified = r.Modified.UnixNano()
	}
	return n.Stat, nil
}

// overwrite is Replace for a file that gets another beginning. It copies the content, since readers may keep slices of the
// old one.
func (m *Storage) overwrite(name string, r storage.Replacement) (storage.Stat, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.get(name, storage.KindFile)
	if err == nil && (n.Token != r.Expect || len(n.data) < len(r.Head)) {
		err = fmt.Errorf("%w: %s", storage.ErrStale, name)
	}
	if err != nil {
		return storage.Stat{}, err
	}
	n.data = slices.Concat(r.Head, n.data[len(r.Head):], r.Tail)
	return m.touch(n).Stat, nil
}

// expect returns an error unless a file has a token, or there is no such file and the token is zero.
func (m *Storage) expect(name string, token storage.Token) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.expectLocked(name, token)
}

// expectLocked is expect for callers that hold m.mu.
func (m *Storage) expectLocked(name string, token storage.Token) error {
	err := storage.CheckName(name)
	if err != nil {
		return err
	}
	n := m.nodes[name]
	isNew := token == storage.Token{}
	switch {
	case n == nil && isNew:
		return nil
	case n == nil:
		return fmt.Errorf("%w: %s", storage.ErrStale, name)
	case isNew:
		return fmt.Errorf("%w: %s: %w", storage.ErrStale, name, fs.ErrExist)
	case n.Kind != storage.KindFile:
		return fmt.Errorf("%w: %s", storage.ErrNotRegular, name)
	case n.Token != token:
		return fmt.Errorf("%w: %s", storage.ErrStale, name)
	}
	return nil
}

// What follows does what other programs do to files.

// WriteFile makes a name stand for a new file, with its directories. Open objects keep their content.
func (m *Storage) WriteFile(name string, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, err := m.put(name, newFile(bytes.Clone(data)))
	return err
}

// Remove removes a file, or a directory with all its content. Open objects keep their content.
func (m *Storage) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, err := m.get(name, storage.KindOther)
	if err != nil {
		return err
	}
	maps.DeleteFunc(m.nodes, func(other string, _ *node) bool {
		return strings.HasPrefix(other+"/", name+"/")
	})
	m.touch(m.nodes[storage.Dir(name)])
	return nil
}

// Chtimes sets the time of a file's last change.
func (m *Storage) Chtimes(name string, modified time.Time) error {
	_, err := m.with(name, storage.KindOther, func(n *node) {
		m.touch(n).Modified = modified.UnixNano()
	})
	return err
}

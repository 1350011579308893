package memory

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"sessionfs/sessioncore/storage"
)

// Storage implements storage.Storage in memory, for tests. It follows the
// contract of dir.Storage exactly, so that code that works with one works with the other: for example, a directory
// must exist before a file is created in it. Use New to create one.
type Storage struct {
	locks storage.FIFOMutexes[string]

	mu      sync.RWMutex // guards the fields below and those of every memNode
	nodes   map[string]*memNode
	inodes  uint64 // number of the last inode
	version int64  // number of changes, stored in Token.Changed
	writers map[string]storage.WriterState
}

var _ storage.Storage = (*Storage)(nil)

// memNode is a file or a directory.
type memNode struct {
	kind     storage.Kind
	inode    uint64
	mode     uint32
	data     []byte              // append-only, so readers may keep a slice of it
	children map[string]*memNode // of a directory, by base name
	modified int64
	changed  int64
}

// New returns an empty storage.
func New() *Storage {
	m := &Storage{nodes: map[string]*memNode{}, writers: map[string]storage.WriterState{}}
	m.nodes[""] = m.node(storage.KindDir, storage.DirMode)
	return m
}

// node returns a new node with a new inode number. Callers must hold m.mu.
func (m *Storage) node(kind storage.Kind, mode uint32) *memNode {
	m.inodes++
	n := &memNode{kind: kind, inode: m.inodes, mode: mode}
	if kind == storage.KindDir {
		n.children = map[string]*memNode{}
	}
	m.touch(n)
	return n
}

// add makes a name below the root stand for a node. Its directory must exist. Callers must hold m.mu.
func (m *Storage) add(name string, n *memNode) {
	dir := m.nodes[storage.Dir(name)]
	m.nodes[name], dir.children[path.Base(name)] = n, n
	m.touch(dir)
}

// touch gives a node a new token. Callers must hold m.mu.
func (m *Storage) touch(n *memNode) {
	m.version++
	n.changed = m.version
	n.modified = time.Now().UnixNano()
}

func (n *memNode) stat() storage.Stat {
	return storage.Stat{
		Token: storage.Token{
			Inode:    n.inode,
			Size:     int64(len(n.data)),
			Modified: n.modified,
			Changed:  n.changed,
		},
		Kind: n.kind,
		Mode: n.mode,
	}
}

// find returns the node of a name. The name "" is the root, for methods that take directories. Callers must hold
// m.mu.
func (m *Storage) find(op, name string) (*memNode, error) {
	if n := m.nodes[name]; n != nil {
		return n, nil
	}
	if err := storage.CheckName(name); err != nil {
		return nil, err
	}
	return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
}

// file is find for a name that must be a file. Callers must hold m.mu.
func (m *Storage) file(op, name string) (*memNode, error) {
	if err := storage.CheckName(name); err != nil { // "" cannot name a file
		return nil, err
	}
	n, err := m.find(op, name)
	if err == nil && n.kind != storage.KindFile {
		return nil, fmt.Errorf("%w: %s", storage.ErrNotRegular, name)
	}
	return n, err
}

// parent returns the node of the directory that contains a name, which need not exist. Callers must hold m.mu.
func (m *Storage) parent(op, name string) (*memNode, error) {
	if err := storage.CheckName(name); err != nil {
		return nil, err
	}
	dir := m.nodes[storage.Dir(name)]
	if dir == nil || dir.kind != storage.KindDir {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	return dir, nil
}

// List implements storage.Files.
func (m *Storage) List(dir string, only []string, f func(storage.Item) bool) error {
	if only != nil {
		return storage.ListOnly(m, dir, only, f)
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	n, err := m.find("open", dir)
	if err != nil {
		return err
	}
	if n.kind != storage.KindDir {
		return &fs.PathError{Op: "open", Path: dir, Err: fs.ErrNotExist}
	}
	for name, child := range n.children {
		if !f(storage.Item{Name: name, Kind: child.kind, State: func() (storage.Stat, error) { return child.stat(), nil }}) {
			return nil
		}
	}
	return nil
}

// ReadAhead implements storage.Files: it does nothing.
func (m *Storage) ReadAhead([]string) {}

// Stat implements storage.Storage.
func (m *Storage) Stat(name string) (storage.Stat, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	n, err := m.find("stat", name)
	if err != nil {
		return storage.Stat{}, err
	}
	return n.stat(), nil
}

// Open implements storage.Storage.
func (m *Storage) Open(name string) (storage.Object, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	n, err := m.file("open", name)
	if err != nil {
		return nil, err
	}
	return &memObject{storage: m, node: n}, nil
}

// memObject is an open node. It stays readable when its name is gone.
type memObject struct {
	storage *Storage
	node    *memNode
	closed  atomic.Bool
}

// ReadAt implements storage.Object.
func (o *memObject) ReadAt(p []byte, off int64) (int, error) {
	if o.closed.Load() {
		return 0, fs.ErrClosed
	}
	if off < 0 {
		return 0, fmt.Errorf("read at a negative offset: %w", fs.ErrInvalid)
	}
	o.storage.mu.RLock()
	data := o.node.data
	o.storage.mu.RUnlock()
	if off >= int64(len(data)) {
		return 0, io.EOF
	}
	n := copy(p, data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Stat implements storage.Object.
func (o *memObject) Stat() (storage.Stat, error) {
	if o.closed.Load() {
		return storage.Stat{}, fs.ErrClosed
	}
	o.storage.mu.RLock()
	defer o.storage.mu.RUnlock()
	return o.node.stat(), nil
}

// Close implements storage.Object.
func (o *memObject) Close() error {
	if o.closed.Swap(true) {
		return fs.ErrClosed
	}
	return nil
}

// Sync implements storage.Storage. It only checks that the file exists.
func (m *Storage) Sync(name string) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	_, err := m.file("fsync", name)
	return err
}

// Lock implements storage.Storage. It returns the same errors as dir.Storage.Lock.
func (m *Storage) Lock(ctx context.Context, name string) (func() error, error) {
	m.mu.RLock()
	_, err := m.parent("lock", name)
	m.mu.RUnlock()
	if err != nil {
		return nil, err
	}
	ctx, cancel := storage.WithLimit(ctx)
	defer cancel()
	_, leave, err := m.locks.Lock(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, name)
	}
	return sync.OnceValue(func() error { leave(); return nil }), nil
}

// Writers implements storage.Storage. It returns WritersNone unless SetWriters has set something else.
func (m *Storage) Writers(name string) (storage.WriterState, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if _, err := m.file("open", name); err != nil {
		return storage.WritersUnknown, err
	}
	if state, ok := m.writers[name]; ok {
		return state, nil
	}
	return storage.WritersNone, nil
}

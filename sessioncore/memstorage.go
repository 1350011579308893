package sessioncore

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// MemoryStorage is a Storage in memory: for tests, and for sessions that are not on disk yet. It keeps
// the contract of FileStorage to the letter, so that what works over one works over the other: a
// directory must be there before a file is put into it. Its zero value is not usable.
type MemoryStorage struct {
	locks gates[string]

	mu      sync.RWMutex // guards what is below, and the fields of every memNode
	nodes   map[string]*memNode
	inodes  uint64 // given out so far
	version int64  // counts changes; a token's Changed
	writers map[string]WriterState
}

var (
	_ Storage      = (*MemoryStorage)(nil)
	_ DirMaker     = (*MemoryStorage)(nil)
	_ WriterFinder = (*MemoryStorage)(nil)
)

// memNode is a file or a directory.
type memNode struct {
	kind     Kind
	inode    uint64
	mode     uint32
	data     []byte // grows at its end; what is there never changes, so readers may keep a slice of it
	modified int64
	changed  int64
}

// NewMemoryStorage returns an empty storage.
func NewMemoryStorage() *MemoryStorage {
	m := &MemoryStorage{nodes: map[string]*memNode{}, writers: map[string]WriterState{}}
	m.nodes[""] = m.node(KindDir, newDirMode)
	return m
}

// node makes a node with a new number. Locked by the caller.
func (m *MemoryStorage) node(kind Kind, mode uint32) *memNode {
	m.inodes++
	n := &memNode{kind: kind, inode: m.inodes, mode: mode}
	m.touch(n)
	return n
}

// touch gives a node a new token. Locked by the caller.
func (m *MemoryStorage) touch(n *memNode) {
	m.version++
	n.changed = m.version
	n.modified = time.Now().UnixNano()
}

func (n *memNode) stat() Stat {
	return Stat{
		Token: Token{
			Inode:    n.inode,
			Size:     int64(len(n.data)),
			Modified: n.modified,
			Changed:  n.changed,
		},
		Kind: n.kind,
		Mode: n.mode,
	}
}

// find returns the node of a name; "" is the root for the calls that take directories. Locked by the
// caller.
func (m *MemoryStorage) find(op, name string) (*memNode, error) {
	if n := m.nodes[name]; n != nil {
		return n, nil
	}
	if err := checkName(name); err != nil {
		return nil, err
	}
	return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
}

// file is find for what must be a file.
func (m *MemoryStorage) file(op, name string) (*memNode, error) {
	if err := checkName(name); err != nil { // "" is no file's name
		return nil, err
	}
	n, err := m.find(op, name)
	if err == nil && n.kind != KindFile {
		return nil, fmt.Errorf("%w: %s", ErrNotRegular, name)
	}
	return n, err
}

// memParent is the name of the directory that a name is in.
func memParent(name string) string {
	dir, _ := path.Split(name)
	return strings.TrimSuffix(dir, "/")
}

// parent finds the directory that a name is or would be in. Locked by the caller.
func (m *MemoryStorage) parent(op, name string) (*memNode, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	dir := m.nodes[memParent(name)]
	if dir == nil || dir.kind != KindDir {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	return dir, nil
}

// List implements Storage.
func (m *MemoryStorage) List(dir string) ([]Item, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	n, err := m.find("open", dir)
	if err != nil {
		return nil, err
	}
	if n.kind != KindDir {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: fs.ErrNotExist}
	}
	items := []Item{}
	for name, n := range m.nodes {
		if name != "" && memParent(name) == dir {
			items = append(items, Item{Name: path.Base(name), Kind: n.kind})
		}
	}
	slices.SortFunc(items, func(a, b Item) int { return strings.Compare(a.Name, b.Name) })
	return items, nil
}

// Stat implements Storage.
func (m *MemoryStorage) Stat(name string) (Stat, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	n, err := m.find("stat", name)
	if err != nil {
		return Stat{}, err
	}
	return n.stat(), nil
}

// Open implements Storage.
func (m *MemoryStorage) Open(name string) (Object, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	n, err := m.file("open", name)
	if err != nil {
		return nil, err
	}
	return &memObject{storage: m, node: n}, nil
}

// memObject is a node that stays readable when its name is gone.
type memObject struct {
	storage *MemoryStorage
	node    *memNode
	closed  atomic.Bool
}

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

func (o *memObject) Stat() (Stat, error) {
	if o.closed.Load() {
		return Stat{}, fs.ErrClosed
	}
	o.storage.mu.RLock()
	defer o.storage.mu.RUnlock()
	return o.node.stat(), nil
}

func (o *memObject) Close() error {
	if o.closed.Swap(true) {
		return fs.ErrClosed
	}
	return nil
}

// Append implements Storage.
func (m *MemoryStorage) Append(name string, data []byte) (Stat, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.file("append", name)
	if err != nil {
		return Stat{}, err
	}
	if len(data) > 0 {
		n.data = append(n.data, data...)
		m.touch(n)
	}
	return n.stat(), nil
}

// Replace implements Storage; its errors are FileStorage.Replace's.
func (m *MemoryStorage) Replace(name string, expect Token, write func(io.Writer) error) (Stat, error) {
	if err := m.expect(name, expect); err != nil {
		return Stat{}, err
	}
	var content bytes.Buffer
	if err := write(&content); err != nil {
		return Stat{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.expectLocked(name, expect); err != nil {
		return Stat{}, err
	}
	return m.put(name, slices.Clip(content.Bytes())).stat(), nil
}

func (m *MemoryStorage) expect(name string, token Token) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.expectLocked(name, token)
}

// expectLocked is place.expect. Locked by the caller.
func (m *MemoryStorage) expectLocked(name string, token Token) error {
	if _, err := m.parent("replace", name); err != nil {
		return err
	}
	n := m.nodes[name]
	switch {
	case n == nil && token == Token{}:
		return nil
	case n == nil:
		return fmt.Errorf("%w: %s is gone", ErrStale, name)
	case token == Token{}:
		return fmt.Errorf("%w: %s: %w", ErrStale, name, fs.ErrExist)
	case n.kind != KindFile:
		return fmt.Errorf("%w: %s", ErrNotRegular, name)
	case n.stat().Token != token:
		return fmt.Errorf("%w: %s", ErrStale, name)
	}
	return nil
}

// put gives a name to a new object. Locked by the caller.
func (m *MemoryStorage) put(name string, data []byte) *memNode {
	mode := uint32(newFileMode)
	if old := m.nodes[name]; old != nil {
		mode = old.mode
	}
	n := m.node(KindFile, mode)
	n.data = data
	m.nodes[name] = n
	m.touch(m.nodes[memParent(name)])
	return n
}

// Sync implements Storage. There is nothing to make durable.
func (m *MemoryStorage) Sync(name string) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	_, err := m.file("fsync", name)
	return err
}

// Lock implements Storage; its errors are FileStorage.Lock's.
func (m *MemoryStorage) Lock(ctx context.Context, name string) (func() error, error) {
	m.mu.RLock()
	_, err := m.parent("lock", name)
	m.mu.RUnlock()
	if err != nil {
		return nil, err
	}
	ctx, cancel := lockContext(ctx)
	defer cancel()
	_, leave, err := m.locks.enter(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, name)
	}
	return sync.OnceValue(func() error { leave(); return nil }), nil
}

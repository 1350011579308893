package pending

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/memory"
)

const (
	// maxPending is the maximum number of sessions in memory. They stay there until they go to disk or the mount
	// ends; a runaway script must not fill the memory with them.
	maxPending = 1000
	// MaxPendingBytes is the maximum total size of the sessions in memory, enough for many long prompts. What
	// exceeds it goes to disk at once: nothing is refused, and nothing is lost.
	MaxPendingBytes = 24 << 20
)

// Storage shows files that are not on disk yet beside those that are. New sessions are kept in memory until an
// assistant's message, an fsync or the end of the mount puts them on disk (docs/design.md section 2, new-session).
// Files on disk are handled by the embedded Storage alone.
type Storage struct {
	storage.Storage // what is on disk
	memory          *memory.Storage

	mu    sync.Mutex // guards the fields below
	files map[string]*waitingFile
	below map[string]int // number of files below each directory; "" is the root
	bytes int64          // sum of their sizes
	hold  budget.Hold    // bytes
	ended bool           // no more data may be kept in memory only
}

// waitingFile describes a file in memory, apart from its content.
type waitingFile struct {
	owner storage.Stat // state of the directory, for the file's owner
	size  int64        // bytes
	used  bool         // it was created as used or appended to
}

var _ storage.Storage = (*Storage)(nil)

// New returns a Storage over disk, which holds the files on disk. The files in memory are a part of limit, which may be
// nil.
func New(disk storage.Storage, limit *budget.Budget) *Storage {
	return &Storage{
		Storage: disk, memory: memory.New(), files: map[string]*waitingFile{}, below: map[string]int{},
		hold: limit.Kept(),
	}
}

// Pending implements Storage. It reports whether the file is in memory only.
func (p *Storage) Pending(name string) bool {
	_, ok := p.waiting(name)
	return ok
}

// waiting returns the owner of a file in memory, and whether there is such a file.
func (p *Storage) waiting(name string) (storage.Stat, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f := p.files[name]; f != nil {
		return f.owner, true
	}
	return storage.Stat{}, false
}

// any reports whether a file below a directory is in memory.
func (p *Storage) any(dir string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.below[dir] > 0
}

// ownerOf returns the state of the directory on disk, or of its nearest existing parent.
func (p *Storage) ownerOf(dir string) storage.Stat {
	for {
		st, err := p.Storage.Stat(dir)
		if err == nil || dir == "" {
			return st
		}
		dir = storage.Dir(dir)
	}
}

// inMemory returns the state of a file in memory with the user and group of owner.
func inMemory(st storage.Stat, owner storage.Stat) storage.Stat {
	st.UID, st.GID = owner.UID, owner.GID
	return st
}

// Stat implements Storage. The token of a directory changes with the files in memory below it.
func (p *Storage) Stat(name string) (storage.Stat, error) {
	if st, ok := p.waitingStat(name); ok {
		return st, nil
	}
	st, err := p.Storage.Stat(name)
	if !p.any(name) {
		return st, err
	}
	mem, memErr := p.memory.Stat(name)
	switch {
	case memErr != nil:
		return st, err
	case err != nil:
		return inMemory(mem, p.ownerOf(storage.Dir(name))), nil
	}
	st.Modified, st.Changed = max(st.Modified, mem.Modified), max(st.Changed, mem.Modified)
	return st, nil
}

// List implements Storage.
func (p *Storage) List(dir string) ([]storage.Item, error) {
	items, err := p.Storage.List(dir)
	if !p.any(dir) {
		return items, err
	}
	more, memErr := p.memory.List(dir)
	if memErr != nil {
		return items, err
	}
	items = append(items, more...)
	// What is on disk too is there first, and stays.
	slices.SortStableFunc(items, func(a, b storage.Item) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(items, func(a, b storage.Item) bool { return a.Name == b.Name }), nil
}

// Each implements Storage.
func (p *Storage) Each(dir string, f func(storage.Item) bool) error {
	if !p.any(dir) {
		return p.Storage.Each(dir, f)
	}
	items, err := p.List(dir) // a file that just went to disk must not come twice
	each(items, f)
	return err
}

func each(items []storage.Item, f func(storage.Item) bool) {
	for _, item := range items {
		if !f(item) {
			return
		}
	}
}

// pendingObject is a pinned file in memory.
type pendingObject struct {
	storage.Object
	owner storage.Stat
}

// Stat implements storage.Object.
func (o pendingObject) Stat() (storage.Stat, error) {
	st, err := o.Object.Stat()
	return inMemory(st, o.owner), err
}

// Open implements Storage.
func (p *Storage) Open(name string) (storage.Object, error) {
	if owner, ok := p.waiting(name); ok {
		if obj, err := p.memory.Open(name); err == nil {
			return pendingObject{obj, owner}, nil
		}
	}
	return p.Storage.Open(name)
}

// Append implements Storage.
func (p *Storage) Append(name string, data []byte) (storage.Stat, error) {
	if owner, ok := p.waiting(name); ok {
		if err := p.reserve(len(data)); err != nil {
			return storage.Stat{}, err
		}
		st, err := p.memory.Append(name, data)
		p.grown(name, st, err, len(data), true)
		return inMemory(st, owner), err
	}
	return p.Storage.Append(name, data)
}

// Replace implements Storage.
func (p *Storage) Replace(name string, expect storage.Token, write func(io.Writer) error) (storage.Stat, error) {
	if owner, ok := p.waiting(name); ok {
		st, err := p.memory.Replace(name, expect, write)
		p.grown(name, st, err, 0, false)
		return inMemory(st, owner), err
	}
	return p.Storage.Replace(name, expect, write)
}

// ReplaceIf implements Storage. No other program knows of a file in memory, so it is unsupported there.
func (p *Storage) ReplaceIf(name string, expect storage.Token, write func(io.Writer) error, ready storage.Ready) (storage.Stat, error) {
	if p.Pending(name) {
		return storage.Stat{}, storage.ErrUnsupported
	}
	return p.Storage.ReplaceIf(name, expect, write, ready)
}

// Sync implements Storage. A file in memory stays there; Keep puts it on disk.
func (p *Storage) Sync(name string) error {
	if p.Pending(name) {
		return p.memory.Sync(name)
	}
	return p.Storage.Sync(name)
}

// Lock implements Storage. The lock of a file in memory is not visible to other processes. If the file goes to disk
// while Lock waits, Lock takes the lock there instead.
func (p *Storage) Lock(ctx context.Context, name string) (func() error, error) {
	if p.Pending(name) {
		unlock, err := p.memory.Lock(ctx, name)
		if err == nil && p.Pending(name) {
			return unlock, nil
		}
		if err == nil {
			err = unlock()
		}
		if err != nil && p.Pending(name) {
			return nil, err
		}
	}
	return p.Storage.Lock(ctx, name)
}

// Writers implements Storage. No other process knows of a file in memory.
func (p *Storage) Writers(name string) (storage.WriterState, error) {
	if p.Pending(name) {
		return storage.WritersNone, nil
	}
	return p.Storage.Writers(name)
}

// Overwrite implements Storage.
func (p *Storage) Overwrite(name string, expect storage.Token, data []byte) (storage.Stat, error) {
	if owner, ok := p.waiting(name); ok {
		st, err := p.memory.Overwrite(name, expect, data)
		return inMemory(st, owner), err
	}
	return p.Storage.Overwrite(name, expect, data)
}

// ListStat implements Storage. Files in memory have the states that Stat returns.
func (p *Storage) ListStat(dir string, want func(storage.Item) bool) ([]storage.StatItem, error) {
	items, err := storage.ListStat(p.Storage, dir, want)
	if !p.any(dir) {
		return items, err
	}
	more, memErr := p.memory.List(dir)
	if memErr != nil {
		return items, err
	}
	at := make(map[string]int, len(items))
	for i, item := range items {
		at[item.Name] = i
	}
	for _, item := range more {
		if !want(item) {
			continue
		}
		st, err := p.Stat(path.Join(dir, item.Name))
		if err != nil {
			continue // it just went to disk, and the directory has changed with it
		}
		if i, ok := at[item.Name]; ok {
			items[i].Stat = st
		} else {
			items = append(items, storage.StatItem{Name: item.Name, Stat: st})
		}
	}
	return items, nil
}

// StatNames implements Storage.
func (p *Storage) StatNames(dir string, names []string, f func(i int, st storage.Stat)) error {
	if !p.any(dir) {
		return storage.StatNames(p.Storage, dir, names, f)
	}
	onDisk := false
	here := func(i int, st storage.Stat) {
		onDisk = true
		if waiting, ok := p.waitingStat(path.Join(dir, names[i])); ok {
			st = waiting
		}
		f(i, st)
	}
	err := storage.StatNames(p.Storage, dir, names, here)
	if onDisk || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for i := range names { // the directory is in memory only
		here(i, storage.Stat{})
	}
	return nil
}

// waitingStat is Stat for a file in memory. It reports false if there is no such file.
func (p *Storage) waitingStat(name string) (storage.Stat, bool) {
	owner, ok := p.waiting(name)
	if !ok {
		return storage.Stat{}, false
	}
	st, err := p.memory.Stat(name)
	return inMemory(st, owner), err == nil
}

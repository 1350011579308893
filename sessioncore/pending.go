package sessioncore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"
)

const (
	// maxPending is how many sessions may wait in memory. They go to disk or stay until the end; a script
	// gone wild must not fill the memory with them.
	maxPending = 1000
	// maxPendingBytes bounds what they hold together: room for many long prompts. What comes on top of it goes
	// to disk at once, which refuses nobody and loses nothing.
	maxPendingBytes = 64 << 20
)

// PendingStorage shows files that are not on disk yet beside those that are: new sessions live in
// memory until an assistant's message, an fsync or the end of the mount puts them there (docs/design.md
// section 2, new-session). What is on disk is the Storage below's alone.
type PendingStorage struct {
	Storage // what is on disk
	memory  *MemoryStorage

	mu    sync.Mutex // guards what follows
	files map[string]*waitingFile
	bytes int64 // their sizes together
	ended bool  // nothing more may be written to memory only
}

// waitingFile is what is known of a file in memory beside its content.
type waitingFile struct {
	owner Stat  // of the directory: whose the file will be
	size  int64 // bytes
	used  bool  // somebody added to it
}

var (
	_ Storage      = (*PendingStorage)(nil)
	_ Linker       = (*PendingStorage)(nil)
	_ DirMaker     = (*PendingStorage)(nil)
	_ WriterFinder = (*PendingStorage)(nil)
)

// NewPendingStorage returns a storage over the one that holds the files on disk.
func NewPendingStorage(disk Storage) *PendingStorage {
	return &PendingStorage{Storage: disk, memory: NewMemoryStorage(), files: map[string]*waitingFile{}}
}

// Pending reports whether a file is in memory only.
func (p *PendingStorage) Pending(name string) bool {
	_, ok := p.waiting(name)
	return ok
}

// waiting returns whose a file in memory will be.
func (p *PendingStorage) waiting(name string) (Stat, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f := p.files[name]; f != nil {
		return f.owner, true
	}
	return Stat{}, false
}

// any reports whether there is a file in memory below a directory.
func (p *PendingStorage) any(dir string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name := range p.files {
		if dir == "" || strings.HasPrefix(name, dir+"/") {
			return true
		}
	}
	return false
}

// ownerOf returns the nearest directory that is on disk.
func (p *PendingStorage) ownerOf(dir string) Stat {
	for {
		st, err := p.Storage.Stat(dir)
		if err == nil || dir == "" {
			return st
		}
		dir = memParent(dir)
	}
}

// inMemory makes the state of a file in memory one that shows whose it is.
func inMemory(st Stat, owner Stat) Stat {
	st.UID, st.GID = owner.UID, owner.GID
	return st
}

// Stat implements Storage. A directory changes with the files in memory below it.
func (p *PendingStorage) Stat(name string) (Stat, error) {
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
		return inMemory(mem, p.ownerOf(memParent(name))), nil
	}
	st.Modified, st.Changed = max(st.Modified, mem.Modified), max(st.Changed, mem.Modified)
	return st, nil
}

// List implements Storage.
func (p *PendingStorage) List(dir string) ([]Item, error) {
	items, err := p.Storage.List(dir)
	if !p.any(dir) {
		return items, err
	}
	more, memErr := p.memory.List(dir)
	if memErr != nil {
		return items, err
	}
	for _, item := range more {
		if !slices.ContainsFunc(items, func(other Item) bool { return other.Name == item.Name }) {
			items = append(items, item)
		}
	}
	slices.SortFunc(items, func(a, b Item) int { return strings.Compare(a.Name, b.Name) })
	return items, nil
}

// pendingObject is a pinned file in memory.
type pendingObject struct {
	Object
	owner Stat
}

func (o pendingObject) Stat() (Stat, error) {
	st, err := o.Object.Stat()
	return inMemory(st, o.owner), err
}

// Open implements Storage.
func (p *PendingStorage) Open(name string) (Object, error) {
	if owner, ok := p.waiting(name); ok {
		if obj, err := p.memory.Open(name); err == nil {
			return pendingObject{obj, owner}, nil
		}
	}
	return p.Storage.Open(name)
}

// Append implements Storage.
func (p *PendingStorage) Append(name string, data []byte) (Stat, error) {
	if owner, ok := p.waiting(name); ok {
		st, err := p.memory.Append(name, data)
		p.grown(name, st, err, true)
		return inMemory(st, owner), err
	}
	return p.Storage.Append(name, data)
}

// Replace implements Storage.
func (p *PendingStorage) Replace(name string, expect Token, write func(io.Writer) error) (Stat, error) {
	if owner, ok := p.waiting(name); ok {
		st, err := p.memory.Replace(name, expect, write)
		p.grown(name, st, err, false)
		return inMemory(st, owner), err
	}
	return p.Storage.Replace(name, expect, write)
}

// ReplaceIf implements GuardedReplacer. Nobody else comes to a file in memory.
func (p *PendingStorage) ReplaceIf(name string, expect Token, write func(io.Writer) error, ready func() error) (Stat, error) {
	guarded, ok := p.Storage.(GuardedReplacer)
	if !ok || p.Pending(name) {
		return p.Replace(name, expect, write)
	}
	return guarded.ReplaceIf(name, expect, write, ready)
}

// Sync implements Storage. What is in memory stays there: Keep puts it on disk.
func (p *PendingStorage) Sync(name string) error {
	if p.Pending(name) {
		return p.memory.Sync(name)
	}
	return p.Storage.Sync(name)
}

// Lock implements Storage. A file that is in memory has no lock that others know; whoever waited for it
// while it went to disk takes the one there.
func (p *PendingStorage) Lock(ctx context.Context, name string) (func() error, error) {
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

// Readlink implements Linker.
func (p *PendingStorage) Readlink(name string) (string, error) {
	if links, ok := p.Storage.(Linker); ok {
		return links.Readlink(name)
	}
	return "", fmt.Errorf("%w: %s", errors.ErrUnsupported, path.Base(name))
}

// MkdirAll implements DirMaker.
func (p *PendingStorage) MkdirAll(dir string) error {
	if dirs, ok := p.Storage.(DirMaker); ok {
		return dirs.MkdirAll(dir)
	}
	return errors.ErrUnsupported
}

// Writers implements WriterFinder: nobody else knows of a file in memory.
func (p *PendingStorage) Writers(name string) (WriterState, error) {
	if p.Pending(name) {
		return WritersNone, nil
	}
	if finder, ok := p.Storage.(WriterFinder); ok {
		return finder.Writers(name)
	}
	return WritersUnknown, nil
}

// Overwrite implements SlotWriter.
func (p *PendingStorage) Overwrite(name string, expect Token, data []byte) (Stat, error) {
	slots, ok := p.Storage.(SlotWriter)
	if owner, pending := p.waiting(name); pending {
		st, err := p.memory.Overwrite(name, expect, data)
		return inMemory(st, owner), err
	} else if !ok {
		return Stat{}, errors.ErrUnsupported
	}
	return slots.Overwrite(name, expect, data)
}

package fs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"sync"

	"sessionfs/sessioncore"
)

// place is a directory of SOURCE: sessions, blobs or terminal-sessions. The client makes them when it
// first needs them, so that a place may come after the mount; once found, links resolved, it stays
// (design.md section 7). Until then it is an empty directory with the looks of SOURCE.
type place struct {
	source *sessioncore.FileStorage
	path   string

	mu    sync.Mutex // guards found
	found *sessioncore.FileStorage
}

var (
	_ sessioncore.Storage      = (*place)(nil)
	_ sessioncore.StatLister   = (*place)(nil)
	_ sessioncore.Linker       = (*place)(nil)
	_ sessioncore.DirMaker     = (*place)(nil)
	_ sessioncore.WriterFinder = (*place)(nil)
	_ sessioncore.SlotWriter   = (*place)(nil)
)

func newPlace(source *sessioncore.FileStorage, name string) *place {
	return &place{source: source, path: filepath.Join(source.Path(), name)}
}

// storage returns the directory, or fs.ErrNotExist while there is none.
func (p *place) storage() (*sessioncore.FileStorage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found != nil {
		return p.found, nil
	}
	s, err := sessioncore.OpenFileStorage(p.path)
	if err != nil {
		return nil, err
	}
	p.found = s
	return s, nil
}

// Close lets go of the directory.
func (p *place) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found == nil {
		return nil
	}
	return p.found.Close()
}

// List implements sessioncore.Storage.
func (p *place) List(dir string) ([]sessioncore.Item, error) {
	s, err := p.storage()
	if dir == "" && errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return s.List(dir)
}

// ListStat implements sessioncore.StatLister.
func (p *place) ListStat(dir string, want func(sessioncore.Item) bool) ([]sessioncore.StatItem, error) {
	s, err := p.storage()
	if dir == "" && errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return s.ListStat(dir, want)
}

// StatNames implements sessioncore.StatLister.
func (p *place) StatNames(dir string, names []string, f func(i int, st sessioncore.Stat)) error {
	s, err := p.storage()
	if err != nil {
		return err
	}
	return s.StatNames(dir, names, f)
}

// Stat implements sessioncore.Storage.
func (p *place) Stat(name string) (sessioncore.Stat, error) {
	s, err := p.storage()
	if name == "" && errors.Is(err, fs.ErrNotExist) {
		return p.source.Stat("")
	}
	if err != nil {
		return sessioncore.Stat{}, err
	}
	return s.Stat(name)
}

// Open implements sessioncore.Storage.
func (p *place) Open(name string) (sessioncore.Object, error) {
	s, err := p.storage()
	if err != nil {
		return nil, err
	}
	return s.Open(name)
}

// Append implements sessioncore.Storage.
func (p *place) Append(name string, data []byte) (sessioncore.Stat, error) {
	s, err := p.storage()
	if err != nil {
		return sessioncore.Stat{}, err
	}
	return s.Append(name, data)
}

// Replace implements sessioncore.Storage.
func (p *place) Replace(name string, expect sessioncore.Token, write func(io.Writer) error) (sessioncore.Stat, error) {
	s, err := p.storage()
	if err != nil {
		return sessioncore.Stat{}, err
	}
	return s.Replace(name, expect, write)
}

// Sync implements sessioncore.Storage.
func (p *place) Sync(name string) error {
	s, err := p.storage()
	if err != nil {
		return err
	}
	return s.Sync(name)
}

// Lock implements sessioncore.Storage.
func (p *place) Lock(ctx context.Context, name string) (func() error, error) {
	s, err := p.storage()
	if err != nil {
		return nil, err
	}
	return s.Lock(ctx, name)
}

// Readlink implements sessioncore.Linker.
func (p *place) Readlink(name string) (string, error) {
	s, err := p.storage()
	if err != nil {
		return "", err
	}
	return s.Readlink(name)
}

// MkdirAll implements sessioncore.DirMaker; the place itself is made where it is missing.
func (p *place) MkdirAll(dir string) error {
	s, err := p.storage()
	if errors.Is(err, fs.ErrNotExist) {
		if err := p.source.MkdirAll(filepath.Base(p.path)); err != nil {
			return err
		}
		s, err = p.storage()
	}
	if err != nil {
		return err
	}
	return s.MkdirAll(dir)
}

// Writers implements sessioncore.WriterFinder.
func (p *place) Writers(name string) (sessioncore.WriterState, error) {
	s, err := p.storage()
	if err != nil {
		return sessioncore.WritersUnknown, err
	}
	return s.Writers(name)
}

// Overwrite implements sessioncore.SlotWriter.
func (p *place) Overwrite(name string, expect sessioncore.Token, data []byte) (sessioncore.Stat, error) {
	s, err := p.storage()
	if err != nil {
		return sessioncore.Stat{}, err
	}
	return s.Overwrite(name, expect, data)
}

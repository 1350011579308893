package sessioncore

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"
)

var (
	_ StatLister = (*FileStorage)(nil)
	_ StatLister = (*PendingStorage)(nil)
)

// ListStat implements StatLister: the directory is opened once, and each name costs one system call.
func (s *FileStorage) ListStat(dir string, want func(Item) bool) ([]StatItem, error) {
	f, err := s.openDir(dir)
	if f == nil || err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	items := make([]StatItem, 0, len(entries))
	for _, e := range entries {
		if !want(Item{Name: e.Name(), Kind: kindOf(e.Type())}) {
			continue
		}
		switch st, err := statIn(f, e.Name()); {
		case err != nil:
			return nil, err
		case st != Stat{}:
			items = append(items, StatItem{e.Name(), st})
		}
	}
	return items, nil
}

// StatNames implements StatLister.
func (s *FileStorage) StatNames(dir string, names []string, f func(i int, st Stat)) error {
	d, err := s.openDir(dir)
	if err != nil {
		return err
	}
	if d == nil {
		for i := range names {
			f(i, Stat{})
		}
		return nil
	}
	defer d.Close()
	for i, name := range names {
		st, err := statIn(d, name)
		if err != nil {
			return err
		}
		f(i, st)
	}
	return nil
}

// openDir opens a directory to be listed; nil for the storage's own where that is away, which makes it an empty
// one.
func (s *FileStorage) openDir(dir string) (*os.File, error) {
	fd, err := s.openat(dir, unix.O_RDONLY|unix.O_DIRECTORY)
	if dir == "" && errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), filepath.Join(s.Path(), dir)), nil
}

// statIn tells about a name in an open directory; the zero Stat where there is none.
func statIn(dir *os.File, name string) (Stat, error) {
	var st unix.Stat_t
	switch err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err {
	case nil:
		return statOf(&st), nil
	case unix.ENOENT:
		return Stat{}, nil
	default:
		return Stat{}, &fs.PathError{Op: "stat", Path: filepath.Join(dir.Name(), name), Err: err}
	}
}

// ListStat implements StatLister. What is in memory is as Stat tells it.
func (p *PendingStorage) ListStat(dir string, want func(Item) bool) ([]StatItem, error) {
	items, err := ListStat(p.Storage, dir, want)
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
			continue // it went to disk just now, and the directory has changed with it
		}
		if i, ok := at[item.Name]; ok {
			items[i].Stat = st
		} else {
			items = append(items, StatItem{item.Name, st})
		}
	}
	return items, nil
}

// StatNames implements StatLister.
func (p *PendingStorage) StatNames(dir string, names []string, f func(i int, st Stat)) error {
	if !p.any(dir) {
		return StatNames(p.Storage, dir, names, f)
	}
	onDisk := false
	here := func(i int, st Stat) {
		onDisk = true
		if waiting, ok := p.waitingStat(path.Join(dir, names[i])); ok {
			st = waiting
		}
		f(i, st)
	}
	err := StatNames(p.Storage, dir, names, here)
	if onDisk || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for i := range names { // the directory is in memory only
		here(i, Stat{})
	}
	return nil
}

// waitingStat is Stat for a file in memory.
func (p *PendingStorage) waitingStat(name string) (Stat, bool) {
	owner, ok := p.waiting(name)
	if !ok {
		return Stat{}, false
	}
	st, err := p.memory.Stat(name)
	return inMemory(st, owner), err == nil
}

// ListStat lists a directory with the states of its names, as StatLister says, whatever the storage.
func ListStat(storage Storage, dir string, want func(Item) bool) ([]StatItem, error) {
	if lister, ok := storage.(StatLister); ok {
		return lister.ListStat(dir, want)
	}
	found, err := storage.List(dir)
	if err != nil {
		return nil, err
	}
	var items []StatItem
	for _, item := range found {
		if !want(item) {
			continue
		}
		switch st, err := storage.Stat(path.Join(dir, item.Name)); {
		case err == nil:
			items = append(items, StatItem{item.Name, st})
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return items, nil
}

// StatNames tells the states of names in a directory, as StatLister says, whatever the storage.
func StatNames(storage Storage, dir string, names []string, f func(i int, st Stat)) error {
	if lister, ok := storage.(StatLister); ok {
		return lister.StatNames(dir, names, f)
	}
	for i, name := range names {
		st, err := storage.Stat(path.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		f(i, st)
	}
	return nil
}

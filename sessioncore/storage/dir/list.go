package dir

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// listBatch is the number of names in a read: one system call returns that many names of sessions.
const listBatch = 256

// List implements storage.Files. It opens the directory once. A state takes one system call.
func (s *Storage) List(dir string, only []string, f func(storage.Item) bool) error {
	d, err := s.openList(dir)
	if d == nil || err != nil {
		return err
	}
	defer d.Close()
	l := &openListing{dir: d}
	if only != nil {
		return l.eachOf(only, f)
	}
	return l.each(f)
}

// openListing gives the items of an open directory, one after another. The functions that return states are made once and not
// for each item.
type openListing struct {
	dir  *os.File
	name string       // of the present item
	stat storage.Stat // of the present item, in eachOf
}

// each calls f with all items until it returns false.
func (l *openListing) each(f func(storage.Item) bool) error {
	state := l.state
	for {
		entries, err := l.dir.ReadDir(listBatch)
		for _, e := range entries {
			l.name = e.Name()
			item := storage.Item{Name: l.name, Kind: kindOf(e.Type()), State: state}
			if !f(item) {
				return nil
			}
		}
		isLast := err == nil && len(entries) < listBatch
		if err == io.EOF || isLast {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// eachOf calls f with the items of some names that are there, until it returns false.
func (l *openListing) eachOf(names []string, f func(storage.Item) bool) error {
	state := l.knownState
	for _, name := range names {
		l.name = name
		st, err := l.state()
		if storage.IsMissing(err) {
			continue
		}
		if err != nil {
			return err
		}
		l.stat = st
		item := storage.Item{Name: name, Kind: st.Kind, State: state}
		if !f(item) {
			return nil
		}
	}
	return nil
}

// state asks for the state of the present item.
func (l *openListing) state() (storage.Stat, error) {
	st, err := statAt(int(l.dir.Fd()), l.name)
	if err != nil {
		err = &fs.PathError{
			Op:   "stat",
			Path: filepath.Join(l.dir.Name(), l.name),
			Err:  err,
		}
	}
	return st, err
}

// knownState returns the state of the present item that was asked for before.
func (l *openListing) knownState() (storage.Stat, error) { return l.stat, nil }

// kindOf returns the kind of a file with a mode.
func kindOf(mode fs.FileMode) storage.Kind {
	switch mode.Type() {
	case 0:
		return storage.KindFile
	case fs.ModeDir:
		return storage.KindDir
	case fs.ModeSymlink:
		return storage.KindLink
	}
	return storage.KindOther
}

// openList opens a directory for listing. It returns nil for a storage without directory.
func (s *Storage) openList(dir string) (*os.File, error) {
	if dir != "" {
		err := storage.CheckName(dir)
		if err != nil {
			return nil, err
		}
	}
	path := filepath.Join(s.path, dir)
	fd, err := s.openat(unix.AT_FDCWD, path, unix.O_RDONLY|unix.O_DIRECTORY)
	if dir == "" && storage.IsMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

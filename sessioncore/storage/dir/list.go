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
	at := ""
	state := func() (storage.Stat, error) {
		st, err := statAt(int(d.Fd()), at)
		if err != nil {
			err = &fs.PathError{
				Op:   "stat",
				Path: filepath.Join(d.Name(), at),
				Err:  err,
			}
		}
		return st, err
	}
	if only != nil {
		return listOnly(&at, only, state, f)
	}
	for {
		entries, err := d.ReadDir(listBatch)
		for _, e := range entries {
			at = e.Name()
			if !f(storage.Item{
				Name:  at,
				Kind:  kindOf(e.Type()),
				State: state,
			}) {
				return nil
			}
		}
		if err == io.EOF || err == nil && len(entries) < listBatch { // there are no more
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// listOnly is List for some names; state returns the state of at.
func listOnly(at *string, only []string, state func() (storage.Stat, error), f func(storage.Item) bool) (err error) {
	var st storage.Stat
	known := func() (storage.Stat, error) { return st, nil }
	for _, *at = range only {
		st, err = state()
		if storage.IsMissing(err) {
			continue
		}
		if err != nil || !f(storage.Item{
			Name:  *at,
			Kind:  st.Kind,
			State: known,
		}) {
			return err
		}
	}
	return nil
}

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

package dir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// listBatch is how many names are read at once: as many as one system call returns of names as long as those of sessions.
const listBatch = 256

// List implements storage.Files. It opens the directory once, and a state takes one system call.
func (s *Storage) List(dir string, only []string, f func(storage.Item) bool) error {
	d, err := s.openDir(dir)
	if d == nil || err != nil {
		return err
	}
	defer d.Close()
	at := nameAt{dirfd: int(d.Fd())}
	state := func() (storage.Stat, error) {
		st, err := at.stat()
		if err != nil {
			err = fmt.Errorf("in %s: %w", d.Name(), err)
		}
		return st, err
	}
	if only != nil {
		return listOnly(&at, only, state, f)
	}
	for {
		entries, err := d.ReadDir(listBatch)
		for _, e := range entries {
			at.base, at.name = e.Name(), e.Name()
			if !f(storage.Item{Name: e.Name(), Kind: kindOf(e.Type()), State: state}) {
				return nil
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// listOnly is List for those names; state returns the state of at.
func listOnly(at *nameAt, only []string, state func() (storage.Stat, error), f func(storage.Item) bool) (err error) {
	var st storage.Stat
	told := func() (storage.Stat, error) { return st, nil }
	for _, name := range only {
		at.base, at.name = name, name
		if st, err = state(); storage.IsMissing(err) {
			continue
		}
		if err != nil || !f(storage.Item{Name: name, Kind: st.Kind, State: told}) {
			return err
		}
	}
	return nil
}

// ReadAhead implements storage.Files: it does nothing.
func (s *Storage) ReadAhead([]string) {}

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

// openDir opens a directory for listing. It returns nil for the storage's own directory if that is missing, which
// makes the storage empty.
func (s *Storage) openDir(dir string) (*os.File, error) {
	fd, err := s.openat(dir, unix.O_RDONLY|unix.O_DIRECTORY)
	if dir == "" && errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), filepath.Join(s.Path(), dir)), nil
}

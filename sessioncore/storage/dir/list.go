package dir

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// List implements Storage.
func (s *Storage) List(dir string) ([]storage.Item, error) {
	d, items, err := s.readDir(dir)
	if d == nil || err != nil {
		return nil, err
	}
	defer d.Close()
	slices.SortFunc(items, func(a, b storage.Item) int { return strings.Compare(a.Name, b.Name) })
	return items, nil
}

// eachBatch is how many names Each reads at once: as many as one system call returns of names as long as those of
// sessions.
const eachBatch = 256

// Each implements Storage.
func (s *Storage) Each(dir string, f func(storage.Item) bool) error {
	d, err := s.openDir(dir)
	if d == nil || err != nil {
		return err
	}
	defer d.Close()
	for {
		entries, err := d.ReadDir(eachBatch)
		for _, e := range entries {
			if !f(storage.Item{Name: e.Name(), Kind: kindOf(e.Type())}) {
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

// ListStat implements Storage. It opens the directory once and makes one system call per name.
func (s *Storage) ListStat(dir string, want func(storage.Item) bool) ([]storage.StatItem, error) {
	d, found, err := s.readDir(dir)
	if d == nil || err != nil {
		return nil, err
	}
	defer d.Close()
	items := make([]storage.StatItem, 0, len(found))
	for _, item := range found {
		if !want(item) {
			continue
		}
		switch st, err := statIn(d, item.Name); {
		case err != nil:
			return nil, err
		case st != storage.Stat{}:
			items = append(items, storage.StatItem{Name: item.Name, Stat: st})
		}
	}
	return items, nil
}

// StatNames implements Storage.
func (s *Storage) StatNames(dir string, names []string, f func(i int, st storage.Stat)) error {
	d, err := s.openDir(dir)
	if err != nil {
		return err
	}
	if d == nil {
		for i := range names {
			f(i, storage.Stat{})
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

// readDir opens a directory as openDir does and returns its items, unsorted.
func (s *Storage) readDir(dir string) (d *os.File, items []storage.Item, err error) {
	d, err = s.openDir(dir)
	if d == nil || err != nil {
		return nil, nil, err
	}
	entries, err := d.ReadDir(-1)
	if err != nil {
		_ = d.Close()
		return nil, nil, err
	}
	items = make([]storage.Item, 0, len(entries))
	for _, e := range entries {
		items = append(items, storage.Item{Name: e.Name(), Kind: kindOf(e.Type())})
	}
	return d, items, nil
}

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

// statIn returns the Stat of a name in an open directory, or the zero Stat if the name does not exist.
func statIn(dir *os.File, name string) (storage.Stat, error) {
	var st unix.Stat_t
	switch err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err {
	case nil:
		return statOf(&st), nil
	case unix.ENOENT:
		return storage.Stat{}, nil
	default:
		return storage.Stat{}, &fs.PathError{Op: "stat", Path: filepath.Join(dir.Name(), name), Err: err}
	}
}

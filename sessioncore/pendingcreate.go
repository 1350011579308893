package sessioncore

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrTooMany: as many sessions as may wait in memory do.
var ErrTooMany = errors.New("too many new sessions wait for their first answer")

// errNoRoom: a file is not to be made in memory but on disk.
var errNoRoom = errors.New("no room in memory")

// Create makes a file in memory; used tells that there is something in it that must not be lost. It makes none that
// could not go to disk, as far as that can be seen: such a file could never be saved, and its name could not
// be looked up. The error wraps fs.ErrExist where there is one of that name, ErrTooMany, or what the
// Storage on disk says.
func (p *PendingStorage) Create(name string, data []byte, used bool) error {
	owner, err := p.checkCreate(name)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch size := int64(len(data)); {
	case p.files[name] != nil:
		return fmt.Errorf("%w: %s", fs.ErrExist, name)
	case used && (p.ended || p.bytes+size > maxPendingBytes):
		return errNoRoom
	case len(p.files) >= maxPending:
		return fmt.Errorf("%w: %d; sync FILE of a session's append puts it on disk", ErrTooMany, len(p.files))
	}
	if err := p.memory.WriteFile(name, data); err != nil {
		return err
	}
	p.files[name] = &waitingFile{owner: owner, size: int64(len(data)), used: used}
	p.bytes += int64(len(data))
	return nil
}

// checkCreate returns the directory on disk that a new file of that name would go into, or the nearest one above it
// that is there.
func (p *PendingStorage) checkCreate(name string) (Stat, error) {
	if err := checkLengths(name); err != nil {
		return Stat{}, err
	}
	_, err := p.Storage.Stat(name)
	if err == nil {
		err = fs.ErrExist
	}
	if !isMissing(err) {
		return Stat{}, fmt.Errorf("%w: %s", err, name)
	}
	dir := memParent(name)
	for {
		st, err := p.Storage.Stat(dir)
		switch {
		case err != nil && (dir == "" || !isMissing(err)):
			return Stat{}, err
		case err == nil && st.Kind != KindDir:
			return Stat{}, fmt.Errorf("%w: %s", unix.ENOTDIR, dir)
		case err == nil:
			return st, checkWritable(p.Storage, dir)
		}
		dir = memParent(dir)
	}
}

// checkLengths refuses a name of which a part is longer than any file system allows; the file's temporary has a longer
// name than the file.
func checkLengths(name string) error {
	for part := range strings.SplitSeq(memParent(name)+"/"+temporaryName(path.Base(name)), "/") {
		if len(part) > unix.NAME_MAX {
			return fmt.Errorf("%w: a name of %d bytes, at most %d: %.60s…", unix.ENAMETOOLONG, len(part), unix.NAME_MAX, part)
		}
	}
	return nil
}

// WriteChecker is a storage that can tell beforehand that nothing can be written into a directory.
type WriteChecker interface {
	// CheckWritable returns why no file can be made in a directory that is there ("" for the root), nil where
	// nothing speaks against it.
	CheckWritable(dir string) error
}

var _ WriteChecker = (*FileStorage)(nil)

func checkWritable(storage Storage, dir string) error {
	if c, ok := storage.(WriteChecker); ok {
		return c.CheckWritable(dir)
	}
	return nil
}

// CheckWritable implements WriteChecker: what access(2) says of a process with our effective ids. A directory that is
// away would be made in the one above.
func (s *FileStorage) CheckWritable(dir string) error {
	fd, err := s.openat(dir, unix.O_PATH|unix.O_DIRECTORY)
	if dir == "" && s.above != nil && isMissing(err) {
		return s.above.CheckWritable("")
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Faccessat(fd, ".", unix.W_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
		return &fs.PathError{Op: "write to", Path: dir, Err: err}
	}
	return nil
}

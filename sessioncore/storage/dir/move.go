package dir

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// Move renames the file name durably, and before it the directory beside it, which is called like
// the file without suffix. The directory of the new name must exist. At any moment the file has one
// of the two names. The error wraps fs.ErrExist if a new name exists. After an error nothing has
// changed.
//
// A killed move may have renamed the directory alone. So a directory at the new place belongs to the
// file that has none beside it, and the next move of the file to there completes the killed one.
func (s *Storage) Move(name, to, suffix string) error {
	from, err := s.openParentToWrite(name)
	if err != nil {
		return err
	}
	defer from.close()
	into, err := s.openParent(to)
	if err != nil {
		return err
	}
	defer into.close()
	err = errors.Join(from.checkDir(), into.checkDir())
	if err != nil {
		return err
	}
	from.sweep() // while the file is there; perhaps nobody writes there later
	err = from.checkKind(storage.KindFile, storage.ErrNotRegular)
	if err != nil {
		return err
	}
	err = into.free()
	if err != nil {
		return err
	}
	dir := from.without(suffix)
	newDir := into.without(suffix)
	err = dir.checkKind(storage.KindDir, unix.ENOTDIR)
	if errors.Is(err, fs.ErrNotExist) {
		return from.moveTo(into)
	}
	if err == nil {
		err = newDir.free()
	}
	if err != nil {
		return err
	}
	err = dir.moveTo(newDir)
	if err != nil {
		return err
	}
	err = from.moveTo(into)
	if err != nil {
		return undone(err, newDir.renameTo(dir))
	}
	return nil
}

// without returns the name without its ending, which is closed with p.
func (p nameAt) without(suffix string) nameAt {
	p.base = strings.TrimSuffix(p.base, suffix)
	p.name = strings.TrimSuffix(p.name, suffix)
	return p
}

// checkKind returns an error that wraps wrong unless the name is of a kind.
func (p nameAt) checkKind(kind storage.Kind, wrong error) error {
	st, err := p.stat()
	if err == nil && st.Kind != kind {
		err = fmt.Errorf("%w: %s", wrong, p.name)
	}
	return err
}

// free fails with fs.ErrExist if the name exists.
func (p nameAt) free() error {
	_, err := p.stat()
	if err == nil {
		return p.fail("move to", fs.ErrExist)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// moveTo renames a file or a directory durably. It undoes that if one of the directories was
// replaced meanwhile.
func (p nameAt) moveTo(to nameAt) error {
	err := p.renameTo(to)
	if err != nil {
		return err
	}
	// The new name first: a loss of power must not lose both.
	err = errors.Join(p.checkDir(), to.checkDir(), to.syncDir(), p.syncDir())
	if err != nil {
		return undone(err, to.renameTo(p))
	}
	return nil
}

// renameTo is renameNew for a file or a directory that moves.
func (p nameAt) renameTo(to nameAt) error {
	return p.fail("move", p.renameNew(p.storage.sys, to))
}

// Touch sets a file's times to now, without following a link.
func (s *Storage) Touch(name string) error {
	p, err := s.openParent(name)
	if err != nil {
		return err
	}
	defer p.close()
	return p.setTime(time.Now())
}

// setTime sets the times of a file, without following a link.
func (p nameAt) setTime(to time.Time) error {
	at := unix.NsecToTimespec(to.UnixNano())
	err := retry(func() error {
		return unix.UtimesNanoAt(p.dir, p.base, []unix.Timespec{at, at}, unix.AT_SYMLINK_NOFOLLOW)
	})
	return p.fail("set the time of", err)
}

// HardLink gives a file a second name in the same directory. The error may wrap fs.ErrExist.
func (s *Storage) HardLink(name, second string) error {
	isBeside := path.Dir(second) == path.Dir(name)
	if !isBeside || storage.CheckName(second) != nil {
		return fmt.Errorf("%w: %s is not beside %s", storage.ErrBadName, second, name)
	}
	p, err := s.openParent(name)
	if err != nil {
		return err
	}
	defer p.close()
	err = retry(func() error {
		return unix.Linkat(p.dir, p.base, p.dir, path.Base(second), 0)
	})
	return p.fail("link", err)
}

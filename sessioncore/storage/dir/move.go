package dir

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// Move gives the file name another name, and durably takes the directory beside it along, which is called like the file
// without suffix. The directory of the new name must exist. At any moment the file has one of the two names, and BesideOf
// finds the directory. The error wraps fs.ErrExist if a new name is taken. After an error nothing has changed.
//
// A file and a directory cannot be renamed by one call. So the directory goes first, and a link
// to it takes its place in the same moment; the file follows, which is the moment at which it has moved; then the link is
// removed:
//
//  1. link: the new name of the directory becomes a link to that very name, as seen from the old place,
//  2. exchange: the directory gets its new name, and the link the old one, where it leads to the directory,
//  3. rename of the file,
//  4. unlink of the link.
//
// A move that is killed leaves the link of one of these steps. The next move of the file takes it away or goes on from
// there; one that is left of the last step does no harm.
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
	m := &move{file: from, newFile: into, dir: from.without(suffix), newDir: into.without(suffix)}
	if err := m.check(suffix); err != nil {
		return err
	}
	return m.run()
}

// without returns the name without its ending. It is closed with p.
func (p nameAt) without(suffix string) nameAt {
	p.base, p.name = strings.TrimSuffix(p.base, suffix), strings.TrimSuffix(p.name, suffix)
	return p
}

// move is one call of Move.
type move struct {
	file, newFile nameAt
	dir, newDir   nameAt
	takes         bool // there is a directory beside the file
}

// check looks at what is there, and puts away what a killed move left.
func (m *move) check(suffix string) error {
	for _, p := range []nameAt{m.file, m.newFile} {
		if err := p.checkDir(); err != nil {
			return err
		}
	}
	st, err := m.file.stat()
	if err == nil && st.Kind != storage.KindFile {
		err = fmt.Errorf("%w: %s", storage.ErrNotRegular, m.file.name)
	}
	if err != nil {
		return err
	}
	if err := m.newFile.free(); err != nil {
		return err
	}
	if err := m.checkDirectory(suffix); err != nil {
		return err
	}
	// A link to the directory is left where the session was before, one for the directory where it was to be.
	if err := m.newDir.removeLink(m.newDir.linkTo(m.dir.name), m.dir.linkTo(m.newDir.name)); err != nil {
		return err
	}
	return m.newDir.free()
}

// checkDirectory finds out whether there is a directory. If a killed move has taken it, it comes back first.
func (m *move) checkDirectory(suffix string) error {
	st, err := m.dir.stat()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case st.Kind == storage.KindDir:
		m.takes = true
		return nil
	}
	is := storage.BesideOf(m.dir.storage, m.file.name, suffix)
	if is == m.dir.name {
		return m.dir.fail("move what is beside", unix.ENOTDIR)
	}
	at, err := m.dir.storage.openParent(is)
	if err != nil {
		return err
	}
	defer at.close()
	m.takes = true
	return m.bringBack(at)
}

// bringBack gives the directory, which a link in its place leads to, the link's name.
func (m *move) bringBack(at nameAt) error {
	if err := exchange(at, m.dir); err != nil {
		return err
	}
	return at.removeLink(m.dir.linkTo(at.name))
}

// free fails with fs.ErrExist if the name is taken.
func (p nameAt) free() error {
	switch _, err := p.stat(); {
	case err == nil:
		return p.fail("move to", fs.ErrExist)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return nil
}

// removeLink removes the name if it is a link with one of these texts.
func (p nameAt) removeLink(texts ...string) error {
	text, err := p.readlink()
	if err != nil || !slices.Contains(texts, text) {
		return nil // another file, or none
	}
	if err := p.unlink(); err != nil {
		return p.fail("remove the link", err)
	}
	return nil
}

// makeLink makes the name a link.
func (p nameAt) makeLink(text string) error {
	if err := retry(func() error { return unix.Symlinkat(text, p.dir.fd, p.base) }); err != nil {
		return p.fail("link", err)
	}
	if os.Geteuid() == 0 { // it is there for a moment
		_ = unix.Fchownat(p.dir.fd, p.base, int(p.was.UID), int(p.was.GID), unix.AT_SYMLINK_NOFOLLOW)
	}
	return nil
}

// linkTo returns the text of a link in p's directory that leads to a path below the storage's root. It ends in the directory
// itself, which other programs do not write, so that no link of theirs is taken for ours.
func (p nameAt) linkTo(target string) string {
	text, _ := filepath.Rel("/"+storage.Dir(p.name), "/"+target) // both are absolute
	return text + "/."
}

// run carries out the move.
func (m *move) run() error {
	if m.takes {
		if err := m.takeDirectory(); err != nil {
			return err
		}
	}
	if err := m.moveFile(); err != nil {
		return m.giveBack(err)
	}
	if m.takes {
		if err := m.dir.removeLink(m.link()); err != nil {
			slog.Warn("a link is left where a session was", "name", m.dir.name, "err", err)
		}
	}
	if err := m.sync(); err != nil { // it has moved: an error would make the caller do it again
		slog.Warn("a moved session may be at its old place after a crash", "session", m.file.name, "err", err)
	}
	return nil
}

// link returns the text of the link that stands in for the directory.
func (m *move) link() string { return m.dir.linkTo(m.newDir.name) }

// takeDirectory gives the directory its new name, and makes the old one a link to it.
func (m *move) takeDirectory() error {
	if err := m.newDir.makeLink(m.link()); err != nil {
		return err
	}
	if err := exchange(m.newDir, m.dir); err != nil {
		return undone(err, m.newDir.removeLink(m.link()))
	}
	// Before the file gets its new name: a loss of power must not leave it without its directory.
	if err := m.sync(); err != nil {
		return m.giveBack(err)
	}
	return nil
}

// giveBack undoes takeDirectory after an error.
func (m *move) giveBack(why error) error {
	if !m.takes {
		return why
	}
	return undone(why, m.bringBack(m.newDir))
}

// exchange swaps two names.
func exchange(a, b nameAt) error {
	switch err := a.exchange(b); err {
	case nil:
		return nil
	case unix.ENOTSUP:
		return fmt.Errorf("%w: this file system cannot exchange two names, which it takes to move a session with its artifacts", unix.EOPNOTSUPP)
	default:
		return b.fail("move", err)
	}
}

// moveFile gives the file its new name. It takes that back if one of the directories was replaced meanwhile.
func (m *move) moveFile() error {
	if err := m.file.renameTo(m.newFile); err != nil {
		return err
	}
	if err := errors.Join(m.file.checkDir(), m.newFile.checkDir()); err != nil {
		return undone(err, m.newFile.renameTo(m.file))
	}
	return nil
}

// renameTo is renameNew for a file that moves.
func (p nameAt) renameTo(to nameAt) error {
	if err := p.renameNew(p.storage.sys, to); err != nil {
		return p.fail("move", err)
	}
	return nil
}

// sync makes the names in both directories durable.
func (m *move) sync() error {
	return cmp.Or(m.newFile.syncDir(), m.file.syncDir())
}

// Touch sets a file's times to now. It does not follow a link.
func (s *Storage) Touch(name string) error {
	p, err := s.openParent(name)
	if err != nil {
		return err
	}
	defer p.close()
	now := unix.NsecToTimespec(time.Now().UnixNano())
	err = retry(func() error {
		return unix.UtimesNanoAt(p.dir.fd, p.base, []unix.Timespec{now, now}, unix.AT_SYMLINK_NOFOLLOW)
	})
	if err != nil {
		return p.fail("touch", err)
	}
	return nil
}

// HardLink gives a file a second name in the same directory. The error wraps fs.ErrExist if that is taken.
func (s *Storage) HardLink(name, second string) error {
	if storage.CheckName(second) != nil || path.Dir(second) != path.Dir(name) {
		return fmt.Errorf("%w: %s is not beside %s", storage.ErrBadName, second, name)
	}
	p, err := s.openParent(name)
	if err != nil {
		return err
	}
	defer p.close()
	if err := retry(func() error { return unix.Linkat(p.dir.fd, p.base, p.dir.fd, path.Base(second), 0) }); err != nil {
		return p.fail("link", err)
	}
	return nil
}

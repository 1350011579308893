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

// Move renames the file name durably, and with it the directory beside it, which is called like the
// file without suffix. The directory of the new name must exist. At any moment the file has one of
// the two names, and BesideOf finds the directory. The error wraps fs.ErrExist if a new name
// exists. After an error nothing has changed.
//
// No call renames a file and a directory. So the directory goes first, and a link to it takes its
// place in the same moment; then the file is renamed, and the link removed:
//
//  1. link: the directory's new name becomes a link to that very name, as seen from the old place,
//  2. exchange: the directory gets its new name, and the link the old one, so that it leads to it,
//  3. rename of the file,
//  4. unlink of the link.
//
// A killed move leaves the link of one of these steps. The next move of the file removes it or
// continues there; a link of the last step does no harm.
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

// without returns the name without its ending, which is closed with p.
func (p nameAt) without(suffix string) nameAt {
	p.base, p.name = strings.TrimSuffix(p.base, suffix), strings.TrimSuffix(p.name, suffix)
	return p
}

// move is one call of Move.
type move struct {
	file, newFile nameAt
	dir, newDir   nameAt
	hasDir        bool // beside the file
}

// check checks the names, and removes the leftovers of a killed move.
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
	// A killed move leaves a link at the old place, or at the new one a link to itself.
	if err := m.newDir.removeLink(m.newDir.linkTo(m.dir.name), m.dir.linkTo(m.newDir.name)); err != nil {
		return err
	}
	return m.newDir.free()
}

// checkDirectory detects the directory. It brings one back that a killed move has moved.
func (m *move) checkDirectory(suffix string) error {
	st, err := m.dir.stat()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case st.Kind == storage.KindDir:
		m.hasDir = true
		return nil
	}
	current := storage.BesideOf(m.dir.storage, m.file.name, suffix)
	if current == m.dir.name {
		return m.dir.fail("move what is beside", unix.ENOTDIR)
	}
	at, err := m.dir.storage.openParent(current)
	if err != nil {
		return err
	}
	defer at.close()
	m.hasDir = true
	return m.bringBack(at)
}

// bringBack exchanges the directory with the link to it in its place, and removes the link.
func (m *move) bringBack(at nameAt) error {
	if err := exchange(at, m.dir); err != nil {
		return err
	}
	return at.removeLink(m.dir.linkTo(at.name))
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

// removeLink removes the name if it is a link with one of these texts.
func (p nameAt) removeLink(texts ...string) error {
	text, err := p.readlink()
	if err != nil || !slices.Contains(texts, text) {
		return nil // another file, or none
	}
	return p.fail("remove the link", p.unlink())
}

// makeLink makes the name a link.
func (p nameAt) makeLink(text string) error {
	if err := retry(func() error { return unix.Symlinkat(text, p.dir.fd, p.base) }); err != nil {
		return p.fail("link", err)
	}
	if os.Geteuid() == 0 { // it exists for a moment
		_ = unix.Fchownat(p.dir.fd, p.base, int(p.dirStat.UID), int(p.dirStat.GID), unix.AT_SYMLINK_NOFOLLOW)
	}
	return nil
}

// linkTo returns the text of a link in p's directory to a path below the storage's root. It ends in
// "/.", which other programs do not write, so that their links are not taken for ours.
func (p nameAt) linkTo(target string) string {
	text, _ := filepath.Rel("/"+storage.Dir(p.name), "/"+target) // both are absolute
	return text + "/."
}

func (m *move) run() error {
	if m.hasDir {
		if err := m.takeDirectory(); err != nil {
			return err
		}
	}
	if err := m.moveFile(); err != nil {
		return m.giveBack(err)
	}
	if m.hasDir {
		if err := m.dir.removeLink(m.link()); err != nil {
			slog.Warn("a link is left where a session was", "name", m.dir.name, "err", err)
		}
	}
	if err := m.sync(); err != nil { // an error would make the caller move it once more
		slog.Warn("a moved session may be at its old place after a crash", "session", m.file.name, "err", err)
	}
	return nil
}

// link returns the text of the link that replaces the directory.
func (m *move) link() string { return m.dir.linkTo(m.newDir.name) }

// takeDirectory renames the directory and leaves a link to it.
func (m *move) takeDirectory() error {
	if err := m.newDir.makeLink(m.link()); err != nil {
		return err
	}
	if err := exchange(m.newDir, m.dir); err != nil {
		return undone(err, m.newDir.removeLink(m.link()))
	}
	// Before the file is renamed: a loss of power must not leave it without its directory.
	if err := m.sync(); err != nil {
		return m.giveBack(err)
	}
	return nil
}

// giveBack undoes takeDirectory after an error.
func (m *move) giveBack(why error) error {
	if !m.hasDir {
		return why
	}
	return undone(why, m.bringBack(m.newDir))
}

func exchange(a, b nameAt) error {
	err := a.exchange(b)
	if err == unix.ENOTSUP {
		const why = "%w: this file system cannot exchange two names, " +
			"which it takes to move a session with its artifacts"
		return fmt.Errorf(why, unix.EOPNOTSUPP)
	}
	return b.fail("move", err)
}

// moveFile renames the file. It undoes that if one of the directories was replaced meanwhile.
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
	return p.fail("move", p.renameNew(p.storage.sys, to))
}

// sync makes the names in both directories durable.
func (m *move) sync() error {
	return cmp.Or(m.newFile.syncDir(), m.file.syncDir())
}

// Touch sets a file's times to now, without following a link.
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
	return p.fail("touch", err)
}

// HardLink gives a file a second name in the same directory. The error may wrap fs.ErrExist.
func (s *Storage) HardLink(name, second string) error {
	if storage.CheckName(second) != nil || path.Dir(second) != path.Dir(name) {
		return fmt.Errorf("%w: %s is not beside %s", storage.ErrBadName, second, name)
	}
	p, err := s.openParent(name)
	if err != nil {
		return err
	}
	defer p.close()
	err = retry(func() error { return unix.Linkat(p.dir.fd, p.base, p.dir.fd, path.Base(second), 0) })
	return p.fail("link", err)
}

package dir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// MkdirAll makes a directory ("" for the root) and its missing parents. New directories have mode 0700 and, if we are root,
// the owner of the directory above. ENOTDIR: a file or a link, which is not followed, is in the way. ErrStale: the storage's
// directory, or one below it that was written to, existed and disappeared (errAway), or is replaced meanwhile.
func (s *Storage) MkdirAll(dir string) error {
	if err := s.mkdirRoot(); dir == "" || err != nil {
		return err
	}
	if err := storage.CheckName(dir); err != nil {
		return err
	}
	if top, _, _ := strings.Cut(dir, "/"); s.wentAway(top) {
		return errAway(top)
	}
	root, was, err := s.root.get()
	if err != nil {
		return err
	}
	above := nameAt{dirfd: root.fd, storage: s, held: root, was: was}
	for part := range strings.SplitSeq(dir, "/") {
		p := nameAt{dirfd: above.dirfd, base: part, name: dir}
		fd, err := p.mkdir()
		if err == nil {
			err = above.checkDir()
			// What was made stays, empty: others may be using it by now.
		}
		above.close()
		if err != nil {
			return err
		}
		above = nameAt{dirfd: fd, name: dir, storage: s, parent: path.Join(above.parent, part)}
	}
	above.close()
	return nil
}

// mkdirRoot creates the storage's own directory if it has never existed.
func (s *Storage) mkdirRoot() error {
	_, err := s.statDir("")
	if !errors.Is(err, fs.ErrNotExist) || s.above == nil {
		return err
	}
	if s.root.isAway() {
		return errAway(s.Path())
	}
	dir, base := filepath.Split(s.Path())
	if filepath.Clean(dir) != s.above.Path() { // behind a link: the target may be on a disk that is not mounted
		return err // behind a link: what is missing may be a disk that is not mounted
	}
	return s.above.MkdirAll(base)
}

// wentAway reports whether a directory of the storage existed recently and does not exist now.
func (s *Storage) wentAway(dir string) bool {
	if _, err := s.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if d := s.held.find(dir); d != nil {
		s.held.drop(dir, d)
		d.release()
		s.held.gone(dir)
	}
	return s.held.isAway(dir)
}

// mkdir opens the directory p, creating it if it does not exist. The error is ENOTDIR if there is a file or a link.
func (p nameAt) mkdir() (int, error) {
	fd, err := p.openDir()
	if err != unix.ENOENT {
		return fd, p.failed("open", err)
	}
	made := unix.Mkdirat(p.dirfd, p.base, storage.DirMode)
	if made != nil && made != unix.EEXIST { // EEXIST: another process created it just now
		return -1, p.fail("mkdir", made)
	}
	if fd, err = p.openDir(); err != nil || made != nil {
		return fd, p.failed("open", err)
	}
	dir, err := fstat(p.dirfd)
	if err == nil {
		err = giveToOwner(fd, dir)
	}
	if err == nil {
		err = p.syncDir(kernel) // otherwise a durable file could be in a directory that a crash forgets
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, p.fail("mkdir", err)
	}
	return fd, nil
}

func (p nameAt) openDir() (fd int, err error) {
	err = retry(func() error {
		fd, err = unix.Openat(p.dirfd, p.base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	if err == unix.ELOOP {
		err = unix.ENOTDIR
	}
	return fd, err
}

// chown changes the owner of fd unless it is right already.
func chown(fd int, uid, gid uint32) error {
	now, err := fstat(fd)
	if err != nil || now.UID == uid && now.GID == gid {
		return err
	}
	return retry(func() error { return unix.Fchown(fd, int(uid), int(gid)) })
}

// giveToOwner changes the owner of a file that root made to the owner of its directory: a user's files stay the
// user's even if the daemon runs as root (docs/design.md section 8).
func giveToOwner(fd int, dir storage.Stat) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return chown(fd, dir.UID, dir.GID)
}

// CheckWritable asks access(2) whether a file can be made in an existing directory ("" for the root), for our effective
// ids. For a missing root it asks for the directory above, in which MkdirAll would create it.
func (s *Storage) CheckWritable(dir string) error {
	fd, err := s.openat(dir, oPath|unix.O_DIRECTORY)
	if dir == "" && s.above != nil && storage.IsMissing(err) {
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

// HardLink gives a file a second name in the same directory. The error wraps fs.ErrExist if that is taken.
func (s *Storage) HardLink(name, second string) error {
	if err := storage.CheckName(second); err != nil {
		return err
	}
	if path.Dir(second) != path.Dir(name) {
		return fmt.Errorf("%w: %s is not beside %s", storage.ErrBadName, second, name)
	}
	p, err := s.openParent(name)
	if err != nil {
		return err
	}
	defer p.close()
	if err := retry(func() error { return unix.Linkat(p.dirfd, p.base, p.dirfd, path.Base(second), 0) }); err != nil {
		return p.fail("link", err)
	}
	return nil
}

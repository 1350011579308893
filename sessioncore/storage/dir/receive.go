package dir

import (
	"fmt"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// incomingBase is what the names of the temporary files of Receive are made of: that of the file may be too long for
// more, or not be known yet.
const incomingBase = "copy.jsonl"

// incoming is a file that grows as its content comes. Where the file system can do that (O_TMPFILE), it has no name, and
// is gone with its process. Elsewhere it is a temporary file, locked (flock) while its process lives; what a killed one
// leaves behind is removed as other temporary files are (sweep).
type incoming struct {
	file
	t *temporary
}

var _ storage.Incoming = (*incoming)(nil)

// Receive implements Storage.
func (s *Storage) Receive(dir string) (storage.Incoming, error) {
	return s.receive(dir, openUnnamed)
}

func (s *Storage) receive(dir string, open func(dirfd int) (int, error)) (storage.Incoming, error) {
	p, err := s.openParent(path.Join(dir, incomingBase))
	if err != nil {
		return nil, err
	}
	t, err := p.unnamed(open)
	if err != nil {
		t, err = p.temporary()
	}
	if err != nil {
		p.close()
		return nil, err
	}
	if s.swept.due(t.owner.Token) {
		p.sweep()
	}
	in := &incoming{file: file{f: os.NewFile(uintptr(t.fd), incomingBase)}, t: t}
	if err := giveToOwner(t.fd, t.owner); err != nil {
		_ = in.Close()
		return nil, t.fail("chown", err)
	}
	return in, nil
}

// unnamed returns a new file without a name, which linkUnnamed can give one.
func (p nameAt) unnamed(open func(dirfd int) (int, error)) (*temporary, error) {
	dir, err := fstat(p.dirfd)
	if err != nil {
		return nil, err
	}
	fd, err := open(p.dirfd)
	if err != nil {
		return nil, err
	}
	return &temporary{nameAt: p, fd: fd, owner: dir, old: -1}, nil
}

// WriteAt implements storage.Incoming.
func (in *incoming) WriteAt(p []byte, off int64) (int, error) { return in.f.WriteAt(p, off) }

// Truncate implements storage.Incoming.
func (in *incoming) Truncate(size int64) error { return in.f.Truncate(size) }

// SetAttributes implements storage.Incoming.
func (in *incoming) SetAttributes(a storage.Attributes) error {
	return in.t.setAttributes(in.t.fd, a)
}

// Publish implements storage.Incoming. The content reaches the disk before the name does.
func (in *incoming) Publish(name string) (storage.Stat, error) {
	return in.publish(kernel, name)
}

func (in *incoming) publish(sys calls, name string) (storage.Stat, error) {
	to, err := in.t.storage.openParentToWrite(name)
	if err != nil {
		return storage.Stat{}, err
	}
	defer to.close()
	if err := retry(func() error { return sys.fsync(in.t.fd) }); err != nil {
		return storage.Stat{}, to.fail("fsync", err)
	}
	if err := to.checkDir(); err != nil {
		return storage.Stat{}, err
	}
	switch err := in.giveName(sys, to); {
	case err == unix.EEXIST:
		return storage.Stat{}, fmt.Errorf("%w: %s", fs.ErrExist, name)
	case err != nil:
		return storage.Stat{}, to.fail("rename into", err)
	}
	if err := to.checkDir(); err != nil { // it is not where its path leads
		if undo := in.takeName(sys, to); undo != nil {
			err = fmt.Errorf("%w (and not taken back: %v)", err, undo)
		}
		return storage.Stat{}, err
	}
	in.t.tempBase = ""
	_ = unix.Flock(in.t.fd, unix.LOCK_UN)
	st, err := fstat(in.t.fd)
	if err != nil {
		return storage.Stat{}, err
	}
	return st, to.syncDir(sys)
}

// giveName gives the file the name to. It fails with EEXIST if that is taken.
func (in *incoming) giveName(sys calls, to nameAt) error {
	if in.t.tempBase == "" {
		return retry(func() error { return linkUnnamed(in.t.fd, to.dirfd, to.base) })
	}
	return sys.renameNewTo(in.t.dirfd, in.t.tempBase, to.dirfd, to.base)
}

// takeName undoes giveName.
func (in *incoming) takeName(sys calls, from nameAt) error {
	if in.t.tempBase != "" {
		return sys.renameNewTo(from.dirfd, from.base, in.t.dirfd, in.t.tempBase)
	}
	st, err := fstat(in.t.fd)
	if err == nil {
		err = from.checkSame(st.Token)
	}
	if err != nil {
		return err
	}
	return unix.Unlinkat(from.dirfd, from.base, 0)
}

// Close implements Object.
func (in *incoming) Close() error {
	if in.t.tempBase != "" {
		_ = unix.Unlinkat(in.t.dirfd, in.t.tempBase, 0)
	}
	err := in.file.Close()
	in.t.close()
	return err
}

package access

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// walk calls f for / and each further part of an absolute path, until it returns an error. Each part is opened, so that
// its mode and its list are of one object whatever is renamed meanwhile, and its parent is the object before.
func walk(name string, f func(at string, o *object, id storage.Token, last bool) error) error {
	if !path.IsAbs(name) || path.Clean(name) != name {
		return fmt.Errorf("%w: %s is no clean absolute path", fs.ErrPermission, name)
	}
	const flags = unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Open("/", flags, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	for at, rest := "/", name[1:]; ; {
		o, id, err := look(fd)
		if err != nil {
			return fmt.Errorf("%w: %s: %w", fs.ErrPermission, at, err)
		}
		if err := f(at, o, id, rest == ""); err != nil || rest == "" {
			return err
		}
		var part string
		part, rest, _ = strings.Cut(rest, "/")
		at = path.Join(at, part)
		next, err := unix.Openat(fd, part, flags, 0)
		if err != nil {
			return &fs.PathError{Op: "open", Path: at, Err: err}
		}
		_ = unix.Close(fd)
		fd = next
	}
}

// look returns what decides about the access to an open file.
func look(fd int) (*object, storage.Token, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, storage.Token{}, err
	}
	id := storage.Token{Device: st.Dev, Inode: st.Ino}
	o := &object{mode: st.Mode, uid: st.Uid, gid: st.Gid}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return nil, id, errors.New("it is a link")
	}
	acl, err := listOf("/proc/self/fd/" + strconv.Itoa(fd))
	if err == nil && acl != nil {
		o.acl, err = parseACL(acl)
	}
	return o, id, err
}

// Attributes of access control lists.
const (
	posixList  = "system.posix_acl_access"
	listPrefix = "system."
)

// listOf returns the POSIX access control list of a file, nil if it has none. The error is errACL if it has one of
// another kind, such as those of NFS. A file system has one kind.
func listOf(file string) ([]byte, error) {
	acl, err := attribute(func(to []byte) (int, error) { return unix.Getxattr(file, posixList, to) })
	if err != unix.ENOTSUP {
		if err == unix.ENODATA {
			err = nil
		}
		return acl, err
	}
	names, err := attribute(func(to []byte) (int, error) { return unix.Listxattr(file, to) })
	if err == unix.ENOTSUP {
		return nil, nil
	}
	for name := range strings.SplitSeq(string(names), "\x00") {
		if strings.HasPrefix(name, listPrefix) {
			return nil, fmt.Errorf("%w: %s", errACL, name)
		}
	}
	return nil, err
}

// attribute reads what a call returns of unknown size; nothing is nil.
func attribute(read func(to []byte) (int, error)) ([]byte, error) {
	var short [256]byte
	n, err := read(short[:])
	if err == nil && n > 0 {
		return short[:n], nil
	}
	if err != unix.ERANGE {
		return nil, err
	}
	long := make([]byte, 64<<10) // as long as any can be
	n, err = read(long)
	return long[:max(n, 0)], err
}

package fs

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	keyName                = "nfs.key"
	minKeySize, maxKeySize = 32, 1024 // in bytes
	othersWrite            = 0o022    // the mode bits by which the group and others may write
	modeBits               = 0o7777   // permissions, without the type of a file
)

// errUnsafeKey means that another user may know the key of the handles, or have made it.
var errUnsafeKey = errors.New("the key is not safe")

// handleKey returns the key of the handles. It is kept in a file of this user's state, so that a
// mount continues with the next server. One that is not safe is made anew, which ends the handles of
// earlier servers.
func handleKey(log *slog.Logger) ([]byte, error) {
	state, err := userDir("XDG_STATE_HOME", ".local/state")
	if err == nil {
		err = os.MkdirAll(state, 0o700)
	}
	if err != nil {
		return nil, err
	}
	file := filepath.Join(state, keyName)
	dir, err := openKeyDir(state)
	if errors.Is(err, errUnsafeKey) {
		log.Warn("the key of NFS handles is not kept: mounts end with this server", "file", file, "why", err)
		return newKey(), nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	var key []byte
	err = closeKeyDir(dir)
	if err == nil {
		key, err = readKey(dir)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		key, err = addKey(dir)
	case errors.Is(err, errUnsafeKey):
		log.Warn("the key of NFS handles is made anew: mounts of earlier servers end, mount again", "file", file, "why", err)
		key, err = replaceKey(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return key, nil
}

// newKey returns a random key of 52 characters, at 5 bits each.
func newKey() []byte { return []byte(rand.Text() + rand.Text()) }

// openKeyDir opens the directory of the key. For one that is a link or another user's the error wraps errUnsafeKey.
func openKeyDir(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err == unix.ENOTDIR || err == unix.ELOOP {
		return nil, fmt.Errorf("%w: its directory is a link", errUnsafeKey)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	dir := os.NewFile(uintptr(fd), path)
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	if err == nil && int(st.Uid) != os.Geteuid() {
		err = fmt.Errorf("%w: its directory belongs to user %d", errUnsafeKey, st.Uid)
	}
	if err != nil {
		dir.Close()
		return nil, err
	}
	return dir, nil
}

// closeKeyDir takes the right to write in a directory from others. If they had it, the files there are not safe, and
// the error wraps errUnsafeKey.
func closeKeyDir(dir *os.File) error {
	var st unix.Stat_t
	err := unix.Fstat(int(dir.Fd()), &st)
	if err != nil || st.Mode&othersWrite == 0 {
		return err
	}
	mode := uint32(st.Mode & modeBits)
	err = unix.Fchmod(int(dir.Fd()), mode&^othersWrite)
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: its directory had mode %#o", errUnsafeKey, mode)
}

// readKey reads the key. Only a regular file of this user with mode 0600 and the size of a key is safe; for another one
// the error wraps errUnsafeKey.
func readKey(dir *os.File) ([]byte, error) {
	var st unix.Stat_t
	err := unix.Fstatat(int(dir.Fd()), keyName, &st, unix.AT_SYMLINK_NOFOLLOW)
	if err == nil {
		err = checkKey(&st) // before it is opened: it may be a device
	}
	if err != nil {
		return nil, err
	}
	fd, err := unix.Openat(int(dir.Fd()), keyName, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), keyName)
	defer file.Close()
	err = unix.Fstat(fd, &st)
	if err == nil {
		err = checkKey(&st) // another file may have the name by now
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(file, maxKeySize))
}

// checkKey returns an error unless a file is a safe key.
func checkKey(st *unix.Stat_t) error {
	kind := st.Mode & unix.S_IFMT
	mode := uint32(st.Mode & modeBits)
	switch {
	case kind == unix.S_IFLNK:
		return fmt.Errorf("%w: it is a link", errUnsafeKey)
	case kind != unix.S_IFREG:
		return fmt.Errorf("%w: it is no regular file", errUnsafeKey)
	case int(st.Uid) != os.Geteuid():
		return fmt.Errorf("%w: it belongs to user %d", errUnsafeKey, st.Uid)
	case mode != 0o600:
		return fmt.Errorf("%w: it has mode %#o", errUnsafeKey, mode)
	case st.Size < minKeySize || st.Size > maxKeySize:
		return fmt.Errorf("%w: it has %d bytes", errUnsafeKey, st.Size)
	}
	return nil
}

// replaceKey puts a new key in place of one, and returns it.
func replaceKey(dir *os.File) ([]byte, error) {
	key, temporary, err := writeKey(dir)
	if err != nil {
		return nil, err
	}
	dirFD := int(dir.Fd())
	defer func() { _ = unix.Unlinkat(dirFD, temporary, 0) }() // after a failure
	return key, unix.Renameat(dirFD, temporary, dirFD, keyName)
}

// addKey makes the key and returns it, or the one that another server has made meanwhile.
func addKey(dir *os.File) ([]byte, error) {
	key, temporary, err := writeKey(dir)
	if err != nil {
		return nil, err
	}
	dirFD := int(dir.Fd())
	defer func() { _ = unix.Unlinkat(dirFD, temporary, 0) }()
	err = unix.Linkat(dirFD, temporary, dirFD, keyName, 0) // which replaces nothing
	switch err {
	case nil:
		return key, nil
	case unix.EEXIST:
		return readKey(dir)
	}
	return key, unix.Renameat(dirFD, temporary, dirFD, keyName) // the file system has no hard links
}

// writeKey writes a new key to a new file in a directory, and returns it with the file's name. After an error there is
// no file.
func writeKey(dir *os.File) (key []byte, name string, err error) {
	name = keyName + "." + rand.Text()
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(int(dir.Fd()), name, flags, 0o600)
	if err != nil {
		return nil, "", err
	}
	file := os.NewFile(uintptr(fd), name)
	key = newKey()
	_, err = file.Write(key)
	err = errors.Join(err, file.Chmod(0o600), file.Sync(), file.Close())
	if err != nil {
		_ = unix.Unlinkat(int(dir.Fd()), name, 0)
		return nil, "", err
	}
	return key, name, nil
}

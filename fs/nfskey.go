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
	othersWrite            = 0o022
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
	err = closeKeyDir(dir)
	var key []byte
	if err == nil {
		key, err = readKey(dir)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		key, err = writeKey(dir, false)
	case errors.Is(err, errUnsafeKey):
		log.Warn("the key of NFS handles is made anew: mounts of earlier servers end, mount again", "file", file, "why", err)
		key, err = writeKey(dir, true)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return key, nil
}

func newKey() []byte { return []byte(rand.Text() + rand.Text()) }

// openKeyDir opens the directory of the key. One that is a link or another user's is not safe.
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

// closeKeyDir takes the right to write from others. If they had it, the files there are not safe.
func closeKeyDir(dir *os.File) error {
	var st unix.Stat_t
	err := unix.Fstat(int(dir.Fd()), &st)
	if err != nil || st.Mode&othersWrite == 0 {
		return err
	}
	mode := uint32(st.Mode & 0o7777)
	err = unix.Fchmod(int(dir.Fd()), mode&^othersWrite)
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: its directory had mode %#o", errUnsafeKey, mode)
}

// readKey reads the key. Only a regular file of this user with mode 0600 is safe, and has one if it
// has a size of a key.
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
		err = checkKey(&st)
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(file, maxKeySize))
}

// checkKey returns an error unless a file is a safe key.
func checkKey(st *unix.Stat_t) error {
	kind := st.Mode & unix.S_IFMT
	mode := uint32(st.Mode & 0o7777)
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

// writeKey makes a key and returns it. Without replace it returns one that another server made
// meanwhile.
func writeKey(dir *os.File, replace bool) ([]byte, error) {
	at := int(dir.Fd())
	temporary := keyName + "." + rand.Text()
	fd, err := unix.Openat(at, temporary, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), temporary)
	defer func() { _ = unix.Unlinkat(at, temporary, 0) }() // unless it was renamed
	key := newKey()
	_, err = file.Write(key)
	err = errors.Join(err, file.Chmod(0o600), file.Sync(), file.Close())
	if err != nil {
		return nil, err
	}
	if !replace {
		err = unix.Linkat(at, temporary, at, keyName, 0)
		switch err {
		case nil:
			return key, nil
		case unix.EEXIST:
			return readKey(dir)
		} // or the file system has no hard links
	}
	return key, unix.Renameat(at, temporary, at, keyName)
}

package storage

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Files outside a storage may be made, or replaced at any moment, by other programs or users: a link
// could lead elsewhere, a pipe keep us waiting, a large file fill memory. They are opened here.

// unfollowed are the flags of open(2) for a file of others: not through a link at its end, without
// waiting for a pipe's writer, and not as our terminal.
const unfollowed = unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY

// OpenRegular opens a regular file for reading, and follows no link at the end of its path. The error
// wraps ErrNotRegular for other kinds.
func OpenRegular(path string) (*os.File, fs.FileInfo, error) {
	return openRegular(path, os.O_RDONLY|unfollowed)
}

// CreateRegular is OpenRegular for reading and writing; it makes the file, with mode 0600, where
// there is none.
func CreateRegular(path string) (*os.File, error) {
	file, _, err := openRegular(path, os.O_RDWR|os.O_CREATE|unfollowed)
	return file, err
}

// IsOwn reports whether a file or directory belongs to this user.
func IsOwn(info fs.FileInfo) bool {
	st, isKnown := info.Sys().(*syscall.Stat_t)
	return isKnown && int(st.Uid) == os.Geteuid()
}

// OpenDir opens a directory, to list it.
func OpenDir(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY, 0)
}

// openRegular opens a file, with a link at the end of its path unless flags have O_NOFOLLOW. The error
// wraps ErrNotRegular for a file of another kind.
func openRegular(path string, flags int) (*os.File, fs.FileInfo, error) {
	if flags&unix.O_NOFOLLOW == 0 {
		return openAfter(os.Stat, path, flags)
	}
	return openAfter(os.Lstat, path, flags)
}

// openAfter checks the kind of a path with stat, opens it, and checks the opened file too: another program may put a file of
// another kind there meanwhile. The error wraps ErrNotRegular for other kinds.
func openAfter(stat func(path string) (fs.FileInfo, error), path string, flags int) (*os.File, fs.FileInfo, error) {
	notRegular := &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	before, err := stat(path)
	if err == nil && !before.Mode().IsRegular() {
		return nil, nil, notRegular // opening some devices has an effect
	}
	file, err := os.OpenFile(path, flags, FileMode)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) {
		return nil, nil, notRegular
	}
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular
	}
	if err != nil {
		_ = file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

// ReadRegular reads a file as OpenRegular opens it, of at most limit bytes. The error of a larger one
// wraps ErrNotRegular too.
func ReadRegular(path string, limit int64) ([]byte, error) { return readPath(path, unfollowed, limit) }

// ReadNamed is ReadRegular for a file that the user has named, which may be a link.
func ReadNamed(path string, limit int64) ([]byte, error) {
	const followed = unfollowed &^ unix.O_NOFOLLOW
	return readPath(path, followed, limit)
}

// readPath reads a file of at most limit bytes. The error wraps ErrNotRegular for a larger one, and
// for one of another kind.
func readPath(path string, flags int, limit int64) ([]byte, error) {
	file, _, err := openRegular(path, os.O_RDONLY|flags)
	if errors.Is(err, ErrNotRegular) {
		return nil, &fs.PathError{Op: "read", Path: path, Err: unfitError{limit}}
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return ReadOpened(file, limit)
}

// ReadOpened reads an open file. The error wraps ErrNotRegular unless it is a regular file of at most
// limit bytes.
func ReadOpened(file *os.File, limit int64) ([]byte, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	unfit := &fs.PathError{Op: "read", Path: file.Name(), Err: unfitError{limit}}
	if !info.Mode().IsRegular() || info.Size() > limit {
		return nil, unfit
	}
	text, err := io.ReadAll(io.LimitReader(file, limit+1)) // it may grow
	if int64(len(text)) > limit {
		return nil, unfit
	}
	return text, err
}

// unfitError is the error of a file that is not regular or larger than limit bytes.
type unfitError struct{ limit int64 }

// Error implements error.
func (e unfitError) Error() string {
	if e.limit < 1<<20 {
		return fmt.Sprintf("it is not a file of at most %d KiB", e.limit>>10)
	}
	return fmt.Sprintf("it is not a file of at most %d MiB", e.limit>>20)
}

// Is makes it ErrNotRegular.
func (e unfitError) Is(target error) bool { return target == ErrNotRegular }

package budget

import (
	"fmt"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

const (
	// askAhead is how much room is checked at once against the free space of the disk.
	askAhead = 16 << 20
	// leave is the room on the disk that stays free, or a tenth of the disk if that is less:
	// clients may write their sessions there.
	leave = 1 << 30
)

// MaxFileBytes bounds the bytes of all files while caches have some to evict. Only tests change it.
var MaxFileBytes int64 = 1 << 30

var inUse atomic.Int64 // the bytes of all files

// FileBytes returns how many bytes the files of this process have together.
func FileBytes() int64 { return inUse.Load() }

// FilesFull reports whether caches must evict files.
func FilesFull() bool { return FileBytes() > MaxFileBytes }

// File is a file that grows only while that leaves room on its disk.
type File struct {
	file        *os.File
	dir         string
	size, asked int64 // there was room for asked bytes
}

// newFile creates a file in dir, "" for the default temporary directory, and removes its name. The caller must
// close it.
func newFile(dir string) (*File, error) {
	if dir == "" {
		dir = os.TempDir()
	}
	file, err := os.CreateTemp(dir, "sessionfs-*") // of mode 0600
	f := &File{file: file, dir: dir}
	if err != nil {
		return nil, f.noRoom(err)
	}
	err = os.Remove(file.Name()) // so that it vanishes with the process
	if err != nil {
		_ = file.Close()
		return nil, f.noRoom(err)
	}
	return f, nil
}

// NamedFile returns a File that writes to an empty file with a name in dir, or an error if its disk is nearly
// full. The caller closes the file itself.
func NamedFile(file *os.File, dir string) (*File, error) {
	f := &File{file: file, dir: dir, asked: askAhead}
	err := f.leavesRoom()
	if err != nil {
		return nil, f.noRoom(err)
	}
	return f, nil
}

// Write appends b. It returns the number of bytes that it has appended, also with an error, which tells a person
// where to make room.
func (f *File) Write(b []byte) (int, error) {
	end := f.size + int64(len(b))
	if end > f.asked {
		f.asked = end + askAhead
		err := f.leavesRoom()
		if err != nil {
			return 0, f.noRoom(err)
		}
	}
	n, err := f.file.WriteAt(b, f.size)
	f.resize(f.size + int64(n))
	if err != nil {
		err = f.noRoom(err)
	}
	return n, err
}

// resize sets the size and counts it in inUse.
func (f *File) resize(size int64) {
	inUse.Add(size - f.size)
	f.size = size
}

// cut removes all but the first n bytes.
func (f *File) cut(n int64) error {
	f.resize(n)
	return f.file.Truncate(n)
}

// close removes a file that has no name.
func (f *File) close() {
	f.resize(0)
	_ = f.file.Close()
}

// leavesRoom returns an error if askAhead more bytes would nearly fill the disk.
func (f *File) leavesRoom() error {
	var st unix.Statfs_t
	err := unix.Fstatfs(int(f.file.Fd()), &st)
	if err != nil {
		return nil // the write will report a full disk
	}
	block := int64(st.Bsize)
	free := int64(st.Bavail) * block
	all := int64(st.Blocks) * block
	if free-askAhead < min(leave, all/10) {
		return unix.ENOSPC
	}
	return nil
}

// noRoom returns the error for a file that cannot be created or written.
func (f *File) noRoom(err error) error {
	return fmt.Errorf("no room in %s: %w: make some there, or set TMPDIR to a directory that has it", f.dir, err)
}

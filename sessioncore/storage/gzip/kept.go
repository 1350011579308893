package gzip

import (
	"bytes"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// kept is what was unpacked of a file: in memory, or in a temporary file that has no name.
type kept struct {
	size  int64
	mem   []byte
	file  *os.File // nil if it is in memory
	asked int64    // up to which size there was room on the disk
}

func (d *kept) readAt(p []byte, off int64) (int, error) {
	switch {
	case len(p) == 0:
		return 0, nil
	case d.file != nil:
		return d.file.ReadAt(p, off)
	}
	return bytes.NewReader(d.mem).ReadAt(p, off)
}

// toFile moves it from memory to a file that only this process can open, as its name is removed before anything is in it.
func (d *kept) toFile(dir string) error {
	f, err := os.CreateTemp(dir, "sessionfs-*") // of mode 0600
	if err != nil {
		return noRoom(dir, err)
	}
	if err = os.Remove(f.Name()); err == nil {
		_, err = f.WriteAt(d.mem, 0)
	}
	if err != nil {
		_ = f.Close()
		return noRoom(dir, err)
	}
	d.file, d.mem = f, nil
	return nil
}

// write appends to the file.
func (d *kept) write(b []byte) error {
	end := d.size + int64(len(b))
	if end > d.asked {
		if err := d.leavesRoom(end + askAhead); err != nil {
			return err
		}
		d.asked = end + askAhead
	}
	if _, err := d.file.WriteAt(b, d.size); err != nil {
		return noRoom(d.file.Name(), err)
	}
	d.size = end
	return nil
}

const (
	// askAhead is for how much at once the disk is asked for room.
	askAhead = 16 << 20
	// leave is how much room on the disk is left to others, or a tenth of the disk if that is less: the disk may be the
	// one on which clients write their sessions.
	leave = 1 << 30
)

// leavesRoom returns an error if the disk would be nearly full after the file has grown to a size.
func (d *kept) leavesRoom(size int64) error {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(d.file.Fd()), &st); err != nil {
		return nil // then it is seen when it is full
	}
	block := int64(st.Bsize)
	free, all := int64(st.Bavail)*block, int64(st.Blocks)*block
	if free-(size-d.size) < min(leave, all/10) {
		return noRoom(d.file.Name(), unix.ENOSPC)
	}
	return nil
}

// noRoom is the error for a temporary file that cannot be made or written.
func noRoom(where string, err error) error {
	return fmt.Errorf("no room to unpack the archive in %s: %w: make some there, or set TMPDIR to a directory that has it", where, err)
}

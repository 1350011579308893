package gzip

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// kept is what was unpacked of a file: in memory, or in a temporary file that has no name.
type kept struct {
	io.ReaderAt
	file *os.File // nil if it is in memory
	size int64    // also of what was unpacked before an error
}

func (d kept) close() {
	if d.file != nil {
		_ = d.file.Close()
	}
}

// unpack unpacks a file to its end.
func (k *cache) unpack(obj storage.Object, token storage.Token) (d kept, err error) {
	limit := k.limitOf(token.Size)
	err = unpacking(obj, token, func(in io.Reader) error {
		var small bytes.Buffer
		in = io.LimitReader(in, limit+1)
		if d.size, err = io.CopyN(&small, in, min(limit, k.inMemory)+1); err == io.EOF {
			d.ReaderAt = bytes.NewReader(bytes.Clone(small.Bytes()))
			return nil
		}
		if err == nil && d.size <= limit {
			err = d.toFile(k.temporary, io.MultiReader(&small, in))
		}
		if err == nil && d.size > limit {
			err = tooLarge(token.Size, limit)
		}
		return err
	})
	if err != nil {
		d.close()
	}
	return d, err
}

const (
	// askAhead is for how much at once the disk is asked for room.
	askAhead = 16 << 20
	// leave is how much room on the disk is left to others, or a tenth of the disk if that is less: the disk may be the
	// one on which clients write their sessions.
	leave = 1 << 30
)

// toFile writes what is read from in to a file that only this process can open, as its name is removed before anything
// is in it.
func (d *kept) toFile(dir string, in io.Reader) error {
	f, err := os.CreateTemp(dir, "sessionfs-*") // of mode 0600
	if err != nil {
		return noRoom(dir, err)
	}
	d.ReaderAt, d.file, d.size = f, f, 0
	if err := os.Remove(f.Name()); err != nil {
		return noRoom(dir, err)
	}
	d.size, err = io.Copy(&roomy{f, 0, 0}, in)
	return err
}

// roomy writes a file as long as that leaves room on its disk.
type roomy struct {
	file        *os.File
	size, asked int64 // there was room for asked bytes
}

func (r *roomy) Write(b []byte) (int, error) {
	if r.size += int64(len(b)); r.size > r.asked {
		r.asked = r.size + askAhead
		if err := r.leavesRoom(); err != nil {
			return 0, noRoom(r.file.Name(), err)
		}
	}
	n, err := r.file.Write(b)
	if err != nil {
		err = noRoom(r.file.Name(), err)
	}
	return n, err
}

// leavesRoom returns an error if the disk would be nearly full with askAhead more.
func (r *roomy) leavesRoom() error {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(r.file.Fd()), &st); err != nil {
		return nil // then it is seen when it is full
	}
	block := int64(st.Bsize)
	if free, all := int64(st.Bavail)*block, int64(st.Blocks)*block; free-askAhead < min(leave, all/10) {
		return unix.ENOSPC
	}
	return nil
}

// noRoom is the error for a temporary file that cannot be made or written.
func noRoom(where string, err error) error {
	return fmt.Errorf("no room to unpack the archive in %s: %w: make some there, or set TMPDIR to a directory that has it", where, err)
}

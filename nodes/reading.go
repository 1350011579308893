package nodes

import (
	"io"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// writes reports whether open flags ask for more than reading.
func writes(flags uint32) bool {
	return flags&syscall.O_ACCMODE != syscall.O_RDONLY || flags&syscall.O_TRUNC != 0
}

// forReading are the flags of every handle that is only read: the kernel need not send FLUSH, which saves
// a round trip for each close.
const forReading = fuse.FOPEN_NOFLUSH

// readAt reads from r; a read at the end is short.
func readAt(r io.ReaderAt, dest []byte, off int64, n *node) (fuse.ReadResult, syscall.Errno) {
	got, err := r.ReadAt(dest, off)
	if err != nil && err != io.EOF {
		return nil, n.view.fail("read", n.path(), err)
	}
	return readBytes(dest[:got]), 0
}

// readBytes returns the result of a read from memory. A vector is sent to the kernel by one writev; for a plain slice
// go-fuse first tries a pipe, which takes three more system calls.
func readBytes(p []byte) fuse.ReadResult { return fuse.ReadResultVector([][]byte{p}) }

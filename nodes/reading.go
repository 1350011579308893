package nodes

import (
	"io"
	"slices"
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
		return nil, n.fail("read", err)
	}
	return readBytes(dest[:got]), 0
}

// readBytes returns the result of a read from memory. A vector is sent to the kernel by one writev; for a plain slice
// go-fuse first tries a pipe, which takes three more system calls.
func readBytes(p []byte) fuse.ReadResult { return fuse.ReadResultVector([][]byte{p}) }

// answers are the results of writes to a control file that have not been read yet. Reads return them in order, whatever
// the offset. Programs that read more than they need (the shells' read, head) seek back: if the next read or write
// begins within what was read last, the rest of that is unread again.
type answers struct {
	text []byte
	next int   // where in text the next read begins
	last int   // how many bytes before that were read last
	at   int64 // the offset at which they were read
}

// add adds an answer.
func (a *answers) add(line string) {
	a.dropRead()
	a.text = append(append(a.text, line...), '\n')
}

// back makes unread what was read last, from an offset on.
func (a *answers) back(off int64) {
	if off >= a.at && off < a.at+int64(a.last) {
		a.next -= a.last - int(off-a.at)
	}
	a.last = 0
}

// read fills dest and returns how many bytes there were.
func (a *answers) read(dest []byte, off int64) int {
	a.back(off)
	n := copy(dest, a.text[a.next:])
	a.next, a.last, a.at = a.next+n, n, off
	a.dropRead()
	return n
}

// dropRead gives back the memory of what cannot be read any more, once that is most of it.
func (a *answers) dropRead() {
	if gone := a.next - a.last; gone > cap(a.text)/2 {
		a.text = slices.Clone(a.text[gone:])
		a.next = a.last
	}
}

// held returns how many bytes of memory the answers take.
func (a *answers) held() int { return cap(a.text) }

package nodes

import (
	"bytes"
	"hash/maphash"
	"syscall"
)

// brokenLine remembers the errno of a line that came in several writes and was refused. The kernel divides a large
// write(2) into several requests. If the first succeeds and the next fails, write(2) returns short and drops the errno,
// and the program writes the rest again: that must fail too, or a line that was refused would pass for written.
type brokenLine struct {
	errno syscall.Errno
	// goesOn says that the rest of the line is still to come; all of it fails. Else what failed was its end, size bytes
	// with this sum, and only that fails again.
	goesOn bool
	size   int
	sum    uint64
}

var brokenSeed = maphash.MakeSeed()

// line records that a line was refused before its end.
func (b *brokenLine) line(errno syscall.Errno) { *b = brokenLine{errno: errno, goesOn: true} }

// hidden records that the end of a line was refused whose beginning came in earlier writes.
func (b *brokenLine) hidden(errno syscall.Errno, data []byte) {
	if !b.goesOn {
		*b = brokenLine{errno: errno, size: len(data), sum: maphash.Bytes(brokenSeed, data)}
	}
}

// writes returns the errno for a write that belongs to the refused line, else 0.
func (b *brokenLine) writes(data []byte) syscall.Errno {
	was := *b
	if !was.goesOn || bytes.IndexByte(data, '\n') >= 0 {
		*b = brokenLine{}
	}
	if was.goesOn || was.errno != 0 && len(data) >= was.size && maphash.Bytes(brokenSeed, data[:was.size]) == was.sum {
		return was.errno
	}
	return 0
}

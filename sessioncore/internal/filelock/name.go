package filelock

import (
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"
)

var (
	// ErrHeld means that another socket holds the lock, of whatever process.
	ErrHeld = errors.New("held by another")
	// ErrUnsupported means that the system has no such locks.
	ErrUnsupported = errors.New("there are no abstract sockets")
)

// Seeds of the two hashes in the socket's name, the same as the client's.
const (
	seedHigh = 0x4f4d502d4c4f434b
	seedLow  = 0x50492d46494c454c
)

// Socket returns the abstract name of the socket for the lock at path, which clients hash as it is: byte by byte, and
// with the links in it. As in Go and /proc, an @ stands for the leading NUL.
func Socket(path string) string {
	sum := func(seed uint64) uint64 {
		d := xxhash.NewWithSeed(seed)
		_, _ = d.WriteString(path) // never fails
		return d.Sum64()
	}
	return fmt.Sprintf("@omp-file-lock-%016x%016x", sum(seedHigh), sum(seedLow))
}

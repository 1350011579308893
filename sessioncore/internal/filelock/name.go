package filelock

import (
	"encoding/binary"
	"encoding/hex"
	"errors"

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

// prefix begins the abstract names. As in Go and /proc, an @ stands for the leading NUL.
const prefix = "@omp-file-lock-"

// Socket returns the abstract name of the socket for the lock at path, which clients hash as it is: byte by byte, and
// with the links in it. As in Go and /proc, an @ stands for the leading NUL.
func Socket(path string) string {
	name := make([]byte, 0, len(prefix)+32)
	name = append(name, prefix...)
	for _, seed := range [...]uint64{seedHigh, seedLow} {
		var d xxhash.Digest // not by its constructor, which allocates
		d.ResetWithSeed(seed)
		_, _ = d.WriteString(path) // never fails
		var sum [8]byte
		binary.BigEndian.PutUint64(sum[:], d.Sum64())
		name = hex.AppendEncode(name, sum[:])
	}
	return string(name)
}

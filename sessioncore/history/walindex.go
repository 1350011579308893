package history

import (
	"bytes"
	"encoding/binary"
	"io"
)

// walIndex is what history.db-shm, the writers' shared memory, says about the log (SQLite's WAL-mode File Format,
// section 2.1). It is read as a file, at any moment, and never written or locked.
type walIndex struct {
	frames uint32  // committed frames in the log
	copied uint32  // how many of them are copied or being copied into the database file
	salts  [8]byte // of the log; they change before it is restarted
}

const (
	indexVersion    = 3007000
	indexHeaderSize = 48 // there are two copies; they differ while being written
	indexSize       = 2*indexHeaderSize + 40
)

// readIndex reads the index; ok is false if there is none, it is being written, or it is invalid.
func readIndex(shm io.ReaderAt) (index walIndex, ok bool) {
	var b [indexSize]byte
	const copies = 2 * indexHeaderSize
	// Read the number of copied frames first: it is reset after the salts change.
	if _, err := shm.ReadAt(b[copies:], copies); err != nil {
		return index, false
	}
	if _, err := shm.ReadAt(b[:copies], 0); err != nil {
		return index, false
	}
	order := binary.NativeEndian
	header := b[:indexHeaderSize]
	if !bytes.Equal(header, b[indexHeaderSize:copies]) || order.Uint32(header) != indexVersion || header[12] == 0 {
		return index, false
	}
	index.frames = order.Uint32(header[16:])
	index.copied = order.Uint32(b[copies+32:])
	copy(index.salts[:], header[32:])
	return index, index.copied <= index.frames
}

package sessioncore

import (
	"hash/maphash"
	"io"
	"sync"
	"time"

	"sessionfs/sessioncore/storage"
)

// fingerprints tell whether a file only grew since it was indexed.
type fingerprints struct {
	stat       storage.Stat
	readAt     int64 // when stat was taken, ns since the epoch, or earlier
	head, tail uint64
	// endsLine reports whether what was indexed is empty or ends in a newline.
	endsLine bool
}

const (
	// headCheck and tailCheck are the numbers of bytes at both ends of what was indexed that are compared to tell
	// growth from another file of the same name.
	headCheck = 4 << 10
	tailCheck = 4 << 10
)

// fingerprintsOf hashes both ends of a file in the state stat, which is from no earlier than lookedAt. The last bytes are
// read from tail. If earlier is not nil, the file's head was just found to be as it was then.
func fingerprintsOf(file, tail io.ReaderAt, stat storage.Stat, lookedAt time.Time, earlier *fingerprints) (f fingerprints, err error) {
	f = fingerprints{stat: stat, readAt: lookedAt.UnixNano()}
	if earlier != nil && earlier.stat.Size >= headCheck {
		f.head = earlier.head
	} else if f.head, err = f.hashHead(file); err != nil {
		return f, err
	}
	if f.tail, err = f.hashTail(tail); err != nil {
		return f, err
	}
	f.endsLine, err = storage.EndsInNewline(tail, stat.Size)
	return f, err
}

// match reports whether both ends of what was indexed still are what they were. The last bytes are read from tail.
func (f *fingerprints) match(file, tail io.ReaderAt) bool {
	head, err := f.hashHead(file)
	if err != nil || head != f.head {
		return false
	}
	end, err := f.hashTail(tail)
	return err == nil && end == f.tail
}

func (f *fingerprints) hashHead(file io.ReaderAt) (uint64, error) {
	return hashAt(file, 0, min(headCheck, f.stat.Size))
}

func (f *fingerprints) hashTail(file io.ReaderAt) (uint64, error) {
	n := min(tailCheck, f.stat.Size)
	return hashAt(file, f.stat.Size-n, n)
}

// hashAt hashes n bytes of obj at off. n must not exceed headCheck.
func hashAt(obj io.ReaderAt, off, n int64) (uint64, error) {
	buf := hashBuffers.Get().(*[headCheck]byte)
	defer hashBuffers.Put(buf)
	if err := storage.ReadFull(obj, buf[:n], off); err != nil {
		return 0, err
	}
	return maphash.Bytes(hashSeed, buf[:n]), nil
}

var hashBuffers = sync.Pool{New: func() any { return new([headCheck]byte) }}

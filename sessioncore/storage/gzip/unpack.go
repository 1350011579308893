package gzip

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"

	"github.com/klauspost/compress/gzip"

	"sessionfs/sessioncore/storage"
)

// member begins a compressed file, and each further one that was appended to it: two magic bytes, and the number of the
// only method that there is.
const member = "\x1f\x8b\x08"

const (
	// maxUnpacked is the maximum size of a file unpacked: what the four bytes can say in which a file tells its size. The
	// longest sessions that are known have half of it.
	maxUnpacked = 1<<32 - 1
	// maxRatio is how many times larger a file may become, if it becomes larger than freeSize. Sessions become 3 to 30
	// times as large; a file that is made to fill a disk, a thousand times.
	maxRatio = 256
	freeSize = 64 << 20
)

// limitOf returns the maximum size that a compressed file of a size may have unpacked.
func limitOf(packed int64) int64 {
	return min(maxUnpacked, max(freeSize, maxRatio*min(packed, maxUnpacked)))
}

// unpacker reads what is in a compressed file, in order. It is made by unpack.
type unpacker struct {
	in    *bufio.Reader
	gz    *gzip.Reader
	began bool  // a member
	end   error // io.EOF after the last one
}

// unpackers keeps unpackers that are not in use: one takes some 100 KB, and listing a directory needs one per file.
var unpackers = sync.Pool{New: func() any { return &unpacker{in: bufio.NewReaderSize(nil, 64<<10), gz: new(gzip.Reader)} }}

// unpacking calls f with a reader of what is in a compressed file, which must not have been overwritten since it was in
// the state of token. What follows the compressed data without being such data is ignored, as by zcat.
func unpacking(obj storage.Object, token storage.Token, f func(io.Reader) error) error {
	u := unpackers.Get().(*unpacker)
	defer unpackers.Put(u)
	u.in.Reset(io.NewSectionReader(obj, 0, token.Size))
	defer u.in.Reset(nil)
	u.began, u.end = false, nil
	err := f(u)
	st, changed := obj.Stat()
	// The time of the last change is also that of a change of the name.
	if changed == nil && (!st.SameObject(token) || st.Size != token.Size || st.Modified != token.Modified) {
		changed = fmt.Errorf("%w: the archive was overwritten", storage.ErrStale)
	}
	return cmp.Or(changed, err)
}

// Read implements io.Reader. At the end of the file, when all checksums were right, the error is io.EOF.
func (u *unpacker) Read(p []byte) (n int, err error) {
	for err = u.end; n == 0 && err == nil; {
		if !u.began {
			if err := u.gz.Reset(u.in); err != nil {
				return 0, damage(err)
			}
			u.gz.Multistream(false)
			u.began = true
		}
		n, err = u.gz.Read(p)
		if err == io.EOF { // the end of a member
			u.began, err = false, nil
			if magic, _ := u.in.Peek(len(member)); string(magic) != member {
				u.end, err = io.EOF, io.EOF
			}
		}
	}
	if err != io.EOF {
		err = damage(err)
	}
	return n, err
}

// brokenError is an error that does not go away as long as the file is what it is.
type brokenError struct{ error }

func (e *brokenError) Unwrap() error { return e.error }

// damage returns the error for a file that cannot be unpacked because of what is in it.
func damage(err error) error {
	var errno syscall.Errno
	switch {
	case err == nil, errors.As(err, &errno), errors.Is(err, storage.ErrStale):
		return err // of reading it
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		err = errors.New("it is cut short")
	}
	return &brokenError{fmt.Errorf("%w: the archive is damaged: %w (zcat prints what is left of it)", syscall.EIO, err)}
}

// tooLarge is the error for a file that becomes larger than limitOf allows.
func tooLarge(packed, limit int64) error {
	return &brokenError{fmt.Errorf("%w: unpacked it would be larger than %d MiB, which no session of %d compressed bytes is", syscall.EFBIG, limit>>20, packed)}
}

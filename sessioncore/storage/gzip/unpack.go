package gzip

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"sessionfs/sessioncore/storage"
)

// format is how files are compressed.
type format struct {
	ending  string // of names, after that of the session file
	magic   string // begins a file
	program string // that compresses so
	most    int64  // maximum size of a file unpacked
	// sizeOf returns the size that a file says its content has. ok is false if it says none.
	sizeOf func(obj storage.Object, size int64) (unpacked int64, ok bool)
	// unpackers keeps unpackers that are not in use: one takes some 100 KB, and listing a directory needs one per file.
	unpackers *sync.Pool
}

// gzipped is how clients archive sessions. A file ends in its size unpacked, which has four bytes: the longest sessions that
// are known have half of what that can say.
var gzipped = &format{
	ending: Ending, magic: member, program: "gzip", most: 1<<32 - 1,
	sizeOf: func(obj storage.Object, size int64) (int64, bool) {
		const trailer = 8 // bytes after the data: a checksum and the size
		var end [trailer]byte
		if err := storage.ReadFull(obj, end[:], max(size-trailer, 0)); err != nil {
			return 0, true
		}
		return int64(binary.LittleEndian.Uint32(end[trailer-4:])), true
	},
	unpackers: &sync.Pool{New: func() any { return &unpacker{in: newReader(), data: &members{}, cat: "zcat"} }},
}

// zstandard is how Codex compresses rollouts (docs/format.md, Codex). The longest that are known have 37 GB.
var zstandard = &format{
	ending: ZstdEnding, magic: "\x28\xb5\x2f\xfd", program: "zstd", most: 1 << 36,
	sizeOf: func(obj storage.Object, size int64) (int64, bool) {
		begin := make([]byte, min(size, zstd.HeaderMaxSize))
		var header zstd.Header
		if storage.ReadFull(obj, begin, 0) != nil || header.Decode(begin) != nil {
			return 0, true
		}
		return int64(header.FrameContentSize), header.HasFCS
	},
	unpackers: &sync.Pool{New: func() any {
		data, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			panic(err) // not with these options
		}
		return &unpacker{in: newReader(), data: data, cat: "zstdcat"}
	}},
}

// maxWindow is how much of what was unpacked is kept to go on, in bytes. The program needs 8 MiB at its highest level.
const maxWindow = 32 << 20

const (
	// maxRatio is how many times larger a file may become, if it becomes larger than freeSize. Sessions become 3 to 30
	// times as large; a file that is made to fill a disk, a thousand times.
	maxRatio = 256
	freeSize = 64 << 20
)

// limitOf returns the maximum size that a compressed file of a size may have unpacked.
func (f *format) limitOf(packed int64) int64 {
	return min(f.most, max(freeSize, maxRatio*min(packed, f.most)))
}

// unpacker reads what is in a compressed file, in order.
type unpacker struct {
	in   *bufio.Reader
	data interface {
		io.Reader
		Reset(io.Reader) error
	}
	cat string // the program that prints what is left of a damaged file
}

func newReader() *bufio.Reader { return bufio.NewReaderSize(nil, 64<<10) }

// unpacking calls f with a reader of what is in a compressed file, which must not have been overwritten since it was in
// the state of token.
func (f *format) unpacking(obj storage.Object, token storage.Token, read func(io.Reader) error) error {
	u := f.unpackers.Get().(*unpacker)
	defer f.unpackers.Put(u)
	u.in.Reset(io.NewSectionReader(obj, 0, token.Size))
	err := u.damage(u.data.Reset(u.in))
	defer func() {
		u.in.Reset(nil)
		_ = u.data.Reset(nil)
	}()
	if err == nil {
		err = read(u)
	}
	st, changed := obj.Stat()
	// The time of the last change is also that of a change of the name.
	if changed == nil && (!st.SameObject(token) || st.Size != token.Size || st.Modified != token.Modified) {
		changed = fmt.Errorf("%w: the archive was overwritten", storage.ErrStale)
	}
	return cmp.Or(changed, err)
}

// Read implements io.Reader. At the end of the file, when all checksums were right, the error is io.EOF.
func (u *unpacker) Read(p []byte) (n int, err error) {
	if n, err = u.data.Read(p); err != io.EOF {
		err = u.damage(err)
	}
	return n, err
}

// member begins a file of gzip, and each further one that was appended to it: two magic bytes, and the number of the only
// method that there is.
const member = "\x1f\x8b\x08"

// members reads the members of a file of gzip. What follows them without being one is ignored, as by zcat.
type members struct {
	in    *bufio.Reader
	gz    gzip.Reader
	began bool  // a member
	end   error // io.EOF after the last one
}

// Reset begins with another file.
func (m *members) Reset(in io.Reader) error {
	m.in, _ = in.(*bufio.Reader)
	m.began, m.end = false, nil
	return nil
}

// Read implements io.Reader.
func (m *members) Read(p []byte) (n int, err error) {
	for err = m.end; n == 0 && err == nil; {
		if !m.began {
			if err := m.gz.Reset(m.in); err == io.EOF { // before the first byte of a member: not the end of the file
				return 0, io.ErrUnexpectedEOF
			} else if err != nil {
				return 0, err
			}
			m.gz.Multistream(false)
			m.began = true
		}
		n, err = m.gz.Read(p)
		if err == io.EOF { // the end of a member
			m.began, err = false, nil
			if magic, _ := m.in.Peek(len(member)); string(magic) != member {
				m.end, err = io.EOF, io.EOF
			}
		}
	}
	return n, err
}

// brokenError is an error that does not go away as long as the file is what it is.
type brokenError struct{ error }

func (e *brokenError) Unwrap() error { return e.error }

// damage returns the error for a file that cannot be unpacked because of what is in it.
func (u *unpacker) damage(err error) error {
	var errno syscall.Errno
	switch {
	case err == nil, errors.As(err, &errno), errors.Is(err, storage.ErrStale):
		return err // of reading it
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		err = errors.New("it is cut short")
	}
	return &brokenError{fmt.Errorf("%w: the archive is damaged: %w (%s prints what is left of it)", syscall.EIO, err, u.cat)}
}

// tooLarge is the error for a file that becomes larger than limitOf allows.
func tooLarge(packed, limit int64) error {
	return &brokenError{fmt.Errorf("%w: unpacked it would be larger than %d MiB, which no session of %d compressed bytes is", syscall.EFBIG, limit>>20, packed)}
}

package gzip

import (
	"bufio"
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

// format is a format of compressed files.
type format struct {
	ending  string // of file names, after the session file's name
	magic   string // first bytes of a file
	program string // the program that compresses
	maxSize int64  // of a file unpacked
	// sizeOf returns the unpacked size that a file states; ok is false if it states none.
	sizeOf func(obj storage.Object, size int64) (unpacked int64, ok bool)
	// unpackers keeps idle unpackers: one takes 100 KB, and listing a directory needs one per file.
	unpackers *sync.Pool
}

// gzipped is the format of the client's archives. A file ends in its unpacked size of four bytes,
// twice the size of the longest known sessions.
var gzipped = &format{
	ending:  Ending,
	magic:   member,
	program: "gzip",
	maxSize: 1<<32 - 1,
	sizeOf: func(obj storage.Object, size int64) (int64, bool) {
		const trailer = 8 // bytes after the data: a checksum and the size
		var end [trailer]byte
		err := storage.ReadFull(obj, end[:], max(size-trailer, 0))
		if err != nil {
			return 0, true
		}
		return int64(binary.LittleEndian.Uint32(end[trailer-4:])), true
	},
	unpackers: &sync.Pool{New: func() any {
		return &unpacker{in: newReader(), data: &members{}, cat: "zcat"}
	}},
}

// zstandard is the format of Codex's rollouts (docs/format-codex.md). The longest have 37 GB.
var zstandard = &format{
	ending:  ZstdEnding,
	magic:   "\x28\xb5\x2f\xfd",
	program: "zstd",
	maxSize: 1 << 36,
	sizeOf: func(obj storage.Object, size int64) (int64, bool) {
		begin := make([]byte, min(size, zstd.HeaderMaxSize))
		var header zstd.Header
		if storage.ReadFull(obj, begin, 0) != nil || header.Decode(begin) != nil {
			return 0, true
		}
		return int64(header.FrameContentSize), header.HasFCS
	},
	unpackers: &sync.Pool{New: func() any {
		data, err := zstd.NewReader(nil,
			zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			panic(err) // not with these options
		}
		return &unpacker{in: newReader(), data: data, cat: "zstdcat"}
	}},
}

// maxWindow bounds the text that an unpacker keeps to refer to. zstd's highest level needs 8 MiB.
const maxWindow = 32 << 20

const (
	// maxRatio bounds how many times its size a file may unpack to, beyond freeSize. Sessions have
	// a ratio of 3 to 30; a file made to fill a disk has 1,000.
	maxRatio = 256
	freeSize = 64 << 20
)

// limitOf returns the maximum unpacked size of a compressed file of a size.
func (f *format) limitOf(packed int64) int64 {
	byRatio := maxRatio * min(packed, f.maxSize) // the inner bound is against an overflow
	return min(f.maxSize, max(freeSize, byRatio))
}

// unpacker reads the unpacked text of a file, in order.
type unpacker struct {
	in   *bufio.Reader
	data interface {
		io.Reader
		Reset(io.Reader) error
	}
	cat string // the program that prints the rest of a damaged file
}

func newReader() *bufio.Reader { return bufio.NewReaderSize(nil, 64<<10) }

// unpack calls read with a reader of the unpacked text, which is valid until read returns. The error is the one of read, a
// brokenError for damage, or storage.ErrStale if the file was overwritten since it was in the state of token, whatever read
// returned.
func (f *format) unpack(obj storage.Object, token storage.Token, read func(io.Reader) error) error {
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
	// Changed is also the time of a rename, so it is not compared.
	isSame := st.SameObject(token) && st.Size == token.Size && st.Modified == token.Modified
	if changed == nil && !isSame {
		changed = fmt.Errorf("%w: the archive was overwritten", storage.ErrStale)
	}
	if changed != nil {
		return changed
	}
	return err
}

// Read implements io.Reader. io.EOF means that all checksums were right.
func (u *unpacker) Read(p []byte) (n int, err error) {
	n, err = u.data.Read(p)
	if err != io.EOF {
		err = u.damage(err)
	}
	return n, err
}

// member begins each member of a gzip file: two magic bytes and the number of the only method.
const member = "\x1f\x8b\x08"

// members reads the members of a gzip file. Like zcat it ignores other trailing bytes.
type members struct {
	in     *bufio.Reader
	gz     gzip.Reader
	within bool  // a member
	end    error // io.EOF after the last one
}

// Reset begins another file.
func (m *members) Reset(in io.Reader) error {
	m.in, _ = in.(*bufio.Reader)
	m.within = false
	m.end = nil
	return nil
}

// Read implements io.Reader. It skips empty members.
func (m *members) Read(p []byte) (n int, err error) {
	for n == 0 && err == nil {
		n, err = m.readMember(p)
	}
	return n, err
}

// readMember reads from one member, and begins it before. n may be 0 without an error at its end. The error is io.EOF behind
// the last member.
func (m *members) readMember(p []byte) (n int, err error) {
	if m.end != nil {
		return 0, m.end
	}
	if !m.within {
		err := m.begin()
		if err != nil {
			return 0, err
		}
	}
	n, err = m.gz.Read(p)
	if err != io.EOF {
		return n, err
	}
	m.within = false
	magic, _ := m.in.Peek(len(member))
	if string(magic) != member {
		m.end = io.EOF
	}
	return n, m.end
}

// begin begins the next member.
func (m *members) begin() error {
	err := m.gz.Reset(m.in)
	if err == io.EOF { // at the first byte of a member
		return io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	m.gz.Multistream(false)
	m.within = true
	return nil
}

// brokenError is an error of a file's content, which lasts as long as the content.
type brokenError struct{ error }

func (e *brokenError) Unwrap() error { return e.error }

// damage makes a brokenError of an error of the unpacker. An error of reading the file stays as it is, nil too.
func (u *unpacker) damage(err error) error {
	var errno syscall.Errno
	switch {
	case err == nil, errors.As(err, &errno), errors.Is(err, storage.ErrStale):
		return err // of reading the file
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		err = errors.New("it is cut short")
	}
	const why = "%w: the archive is damaged: %w (%s prints what is left of it)"
	return &brokenError{fmt.Errorf(why, syscall.EIO, err, u.cat)}
}

// tooLarge returns the error for a file beyond limitOf.
func tooLarge(packed, limit int64) error {
	const why = "%w: unpacked it would be larger than %d MiB, which no session of %d compressed bytes is"
	return &brokenError{fmt.Errorf(why, syscall.EFBIG, limit>>20, packed)}
}

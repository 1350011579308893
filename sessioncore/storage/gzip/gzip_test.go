package gzip

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
)

// archive is a directory with compressed files.
type archive struct {
	*Storage
	dir string
}

// The tests have files on disk from the size large on.
const (
	step  = 64 << 10
	large = 2 * step
)

// newArchive returns an empty archive. The end of the test requires that it gave back all memory and files.
func newArchive(t *testing.T, limit *budget.Budget) *archive {
	files := sessiontest.OpenDir(t, t.TempDir())
	a := &archive{Storage: New(files, limit, t.TempDir()), dir: files.Path()}
	a.texts.Most = large
	t.Cleanup(func() {
		require.Zero(t, a.texts.Limit.Held(), "all is given back")
		require.Empty(t, a.unpacked)
		left, err := os.ReadDir(a.texts.Dir)
		require.NoError(t, err)
		require.Empty(t, left)
	})
	return a
}

func (a *archive) write(t *testing.T, name string, data []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(a.dir, name), data, 0o600))
}

// open writes a compressed file and opens it.
func (a *archive) open(t *testing.T, data []byte) *object {
	t.Helper()
	a.write(t, "x.jsonl"+a.format.ending, data)
	return storagetest.Open(t, a, "x.jsonl").(*object)
}

// pack compresses text.
func pack(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.Bytes()
}

// lines returns text of at least n bytes that becomes some five times smaller.
func lines(n int) string {
	rng := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for b.Len() < n {
		fmt.Fprintf(&b, `{"type":"message","id":"%08x","text":"the same words again and again"}`+"\n", rng.Uint32())
	}
	return b.String()
}

// read returns the text of a file, and opens it once more if its size turned out to be another, as its readers do.
func read(s storage.Files, name string) (text string, err error) {
	text, err = readOnce(s, name)
	if errors.Is(err, storage.ErrStale) {
		return readOnce(s, name)
	}
	return text, err
}

// readOnce returns the text of a file, of the size that it states.
func readOnce(s storage.Files, name string) (text string, err error) {
	obj, err := s.Open(name)
	if err != nil {
		return "", err
	}
	st, statErr := obj.Stat()
	b := make([]byte, st.Size)
	readErr := storage.ReadFull(obj, b, 0)
	return string(b), errors.Join(statErr, readErr, obj.Close())
}

// TestReads reads files of many sizes, in memory and in temporary files, by parts in any order.
func TestReads(t *testing.T) {
	for _, n := range []int{1, 100, 4 << 10, large - 1, large, large + 1, large + 2*step} {
		a := newArchive(t, nil)
		text := lines(n)[:n]
		obj := a.open(t, pack(text))
		require.EqualValues(t, n, storagetest.Stat(t, a, "x.jsonl").Size)
		st, err := obj.Stat()
		require.NoError(t, err)
		require.Equal(t, storagetest.Stat(t, a, "x.jsonl"), st)
		if n > beginning {
			p := make([]byte, beginning-100)
			require.NoError(t, storage.ReadFull(obj, p, 100))
			require.Equal(t, text[100:beginning], string(p))
			require.Nil(t, obj.content, "who reads the beginning only has no more unpacked")
		}
		rng := rand.New(rand.NewPCG(3, uint64(n)))
		for range 20 {
			off := rng.IntN(n + 10)
			p := make([]byte, rng.IntN(n/2+20))
			got, err := obj.ReadAt(p, int64(off))
			want := text[min(off, n):min(off+len(p), n)]
			require.Equal(t, want, string(p[:got]), "%d %v", n, err)
			if len(want) < len(p) {
				require.ErrorIs(t, err, io.EOF)
			} else {
				require.NoError(t, err)
			}
		}
		_, err = obj.ReadAt(make([]byte, 1), -1)
		require.ErrorIs(t, err, fs.ErrInvalid)
		require.NoError(t, obj.Close())
		require.ErrorIs(t, obj.Close(), fs.ErrClosed)
		_, err = obj.ReadAt(make([]byte, 1), 0)
		require.ErrorIs(t, err, fs.ErrClosed)
	}
}

// TestNames: a plain session file is shown before a compressed one, and neither links nor other files are unpacked.
func TestNames(t *testing.T) {
	a := newArchive(t, nil)
	require.NoError(t, os.MkdirAll(filepath.Join(a.dir, "d.jsonl.gz"), 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(a.dir, "p"), 0o700))
	a.write(t, "p/both.jsonl", []byte("plain"))
	a.write(t, "p/both.jsonl.gz", pack("compressed"))
	a.write(t, "p/one.jsonl.gz", pack("one"))
	a.write(t, "p/log.txt.gz", pack("log"))
	a.write(t, "p/not.jsonl.gz", []byte("not compressed"))
	require.NoError(t, os.Symlink("one.jsonl.gz", filepath.Join(a.dir, "p", "link.jsonl.gz")))
	items, err := storage.List(a, "p")
	require.NoError(t, err)
	require.Equal(t, []storage.Item{
		{Name: "both.jsonl", Kind: storage.KindFile}, {Name: "link.jsonl.gz", Kind: storage.KindLink}, {Name: "log.txt.gz", Kind: storage.KindFile},
		{Name: "not.jsonl", Kind: storage.KindFile}, {Name: "one.jsonl", Kind: storage.KindFile},
	}, items)
	stats, err := storage.ListStat(a, "p", func(item storage.Item) bool { return strings.HasSuffix(item.Name, ".jsonl") })
	require.NoError(t, err)
	require.Len(t, stats, 3)
	for _, item := range stats {
		require.Equal(t, storagetest.Stat(t, a, "p/"+item.Name), item.Stat, item.Name)
	}
	for name, want := range map[string]string{"p/both.jsonl": "plain", "p/one.jsonl": "one"} {
		require.Equal(t, want, storagetest.Read(t, a, name))
	}
	for _, name := range []string{"p/none.jsonl", "p/link.jsonl", "p/log.txt", "d.jsonl"} {
		_, err := a.Stat(name)
		require.ErrorIs(t, err, fs.ErrNotExist, name)
		_, err = a.Open(name)
		require.Error(t, err, name)
	}
	_, err = a.Open("p/not.jsonl")
	require.ErrorIs(t, err, storage.ErrNotRegular)
}

// packed is a compressed file, and the text or the error of reading it.
type packed struct {
	data []byte
	want string
	err  error
}

// whole returns a file that is read without an error.
func whole(data []byte, text string) packed { return packed{data: data, want: text} }

// refused returns a file that is read with an error.
func refused(data []byte, err error) packed { return packed{data: data, err: err} }

// check requires that each file of a format is unpacked or refused, each time that it is read. limit bounds the unpacked size.
func check(t *testing.T, f *format, limit int64, files map[string]packed) {
	for name, c := range files {
		t.Run(name, func(t *testing.T) {
			a := newArchive(t, nil)
			a.format = f
			a.limitOf = func(int64) int64 { return limit }
			a.write(t, "x.jsonl"+f.ending, c.data)
			for range 3 {
				got, err := read(a, "x.jsonl")
				require.ErrorIs(t, err, c.err)
				require.NotErrorIs(t, err, storage.ErrStale)
				if err == nil {
					require.True(t, c.want == got)
					require.EqualValues(t, len(got), storagetest.Stat(t, a, "x.jsonl").Size)
				}
			}
		})
	}
}

// TestLies reads files of another format than their names say, damaged ones, and some made to fill the disk.
func TestLies(t *testing.T) {
	text := lines(step + 100)
	good := pack(text)
	const (
		sizeBytes = 4 // at the end of a file
		trailer   = 8 // with a checksum before them
	)
	and := func(more []byte) []byte { return slices.Concat(good, more) }
	flip := func(offset int, bits byte) []byte {
		bad := bytes.Clone(good)
		bad[offset] ^= bits
		return bad
	}
	says := func(size uint32) []byte {
		text := bytes.Clone(good[:len(good)-sizeBytes])
		return binary.LittleEndian.AppendUint32(text, size)
	}
	junk := []byte("this is no compressed data")
	bomb := pack(strings.Repeat("x", 2<<20))
	check(t, gzipped, 1<<20, map[string]packed{
		"as it should be":            whole(good, text),
		"two members":                whole(and(good), text+text),
		"an empty second member":     whole(and(pack("")), text),
		"junk after it":              whole(and(junk), text),
		"junk that tells a size":     whole(binary.LittleEndian.AppendUint32(and(junk), uint32(2*len(text))), text),
		"wrong checksum":             refused(flip(len(good)-trailer, 1), syscall.EIO),
		"says that it is larger":     refused(says(uint32(len(text)+1)), syscall.EIO),
		"says that it is far larger": refused(says(1<<32-1), syscall.EIO),
		"without its end":            refused(good[:len(good)-5], syscall.EIO),
		"cut in the middle":          refused(good[:len(good)/2], syscall.EIO),
		"a flipped bit":              refused(flip(len(good)/2, 4), syscall.EIO),
		"cut in the second member":   refused(and(good[:len(good)/2]), syscall.EIO),
		"nothing":                    refused(nil, storage.ErrNotRegular),
		"a bomb":                     refused(bomb, syscall.EFBIG),
		"a bomb that hides it":       refused(append(bomb, good...), syscall.EFBIG),
	})
}

// packZstd compresses as Codex does: newer versions say the size first, which is set with sized.
func packZstd(t *testing.T, text string, sized bool, options ...zstd.EOption) []byte {
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out, append(options, zstd.WithEncoderConcurrency(1))...)
	require.NoError(t, err)
	if sized {
		w.ResetContentSize(&out, int64(len(text)))
	}
	_, err = io.WriteString(w, text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

// TestZstd reads whole, damaged and deceptive files of zstd.
func TestZstd(t *testing.T) {
	text := lines(3 * step)
	good := packZstd(t, text, false)
	sized := packZstd(t, text, true)
	flipped := bytes.Clone(good)
	flipped[len(good)/2] ^= 4
	lies := bytes.Clone(sized)
	size := binary.LittleEndian.AppendUint32(nil, uint32(len(text)))
	sizeStart := bytes.Index(lies, size)
	require.Positive(t, sizeStart)
	lies[sizeStart]++
	repeated := strings.Repeat("x", 8<<20)
	wide := packZstd(t, lines(4<<20), false, zstd.WithWindowSize(2*maxWindow))
	check(t, zstandard, 5<<20, map[string]packed{
		"as it should be":         whole(good, text),
		"with its size":           whole(sized, text),
		"nothing in it":           whole(packZstd(t, "", true), ""),
		"two frames":              whole(slices.Concat(sized, good), text+text),
		"says another size":       refused(lies, syscall.EIO),
		"cut":                     refused(sized[:len(sized)/2], syscall.EIO),
		"cut, without its size":   refused(good[:len(good)/2], syscall.EIO),
		"half a header":           refused(good[:5], syscall.EIO),
		"a flipped bit":           refused(flipped, syscall.EIO),
		"junk after it":           refused(append(bytes.Clone(good), "junk"...), syscall.EIO),
		"something else":          refused([]byte(text), storage.ErrNotRegular),
		"a bomb":                  refused(packZstd(t, repeated, false), syscall.EFBIG),
		"a bomb that says so":     refused(packZstd(t, repeated, true), syscall.EFBIG),
		"more memory than it may": refused(wide, syscall.EIO),
	})
}

// TestZstdMemory: to unpack a large file takes no more memory than a small one.
func TestZstdMemory(t *testing.T) {
	a := newArchive(t, nil)
	a.format = zstandard
	a.limitOf = func(int64) int64 { return 1 << 30 }
	data := packZstd(t, strings.Repeat(lines(1<<20), 100), false)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	obj := a.open(t, data)
	st, err := obj.Stat()
	require.NoError(t, err)
	require.NoError(t, storage.ReadFull(obj, make([]byte, 4096), st.Size-4096))
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20))
}

// TestDamage: what comes before the damage can be read, and a damaged file is not unpacked to the damage again.
func TestDamage(t *testing.T) {
	a := newArchive(t, nil)
	text := lines(2 * step)
	data := pack(text)
	a.write(t, "x.jsonl.gz", data[:len(data)/2])
	_, err := read(a, "x.jsonl")
	require.ErrorContains(t, err, "cut short")
	obj := a.open(t, data[:len(data)/2])
	p := make([]byte, 4096)
	require.NoError(t, storage.ReadFull(obj, p, 0))
	require.Equal(t, text[:4096], string(p))
	st, err := obj.Stat()
	require.NoError(t, err)
	require.ErrorIs(t, storage.ReadFull(obj, p, st.Size-int64(len(p))), syscall.EIO)
	require.Nil(t, obj.content, "nothing was unpacked for the error")
}

// TestChanges: an open file shows what it showed, or says that it cannot.
func TestChanges(t *testing.T) {
	a := newArchive(t, nil)
	first := lines(large + step)
	second := strings.Repeat("second ", step/7)
	open := func() storage.Object { return storagetest.Open(t, a, "x.jsonl") }
	replace := func(data []byte) {
		a.write(t, "new", data)
		require.NoError(t, os.Rename(filepath.Join(a.dir, "new"), filepath.Join(a.dir, "x.jsonl.gz")))
	}
	replace(pack(first))
	old := open()
	require.NoError(t, storage.ReadFull(old, make([]byte, 10), 0))
	replace(pack(second))
	require.Equal(t, second, storagetest.Read(t, a, "x.jsonl"))
	require.Equal(t, first, storagetest.ReadObject(t, old))
	require.NoError(t, os.Remove(filepath.Join(a.dir, "x.jsonl.gz")))
	require.Equal(t, first, storagetest.ReadObject(t, old))

	replace(pack(first))
	known := open()
	unknown := open()
	require.NoError(t, storage.ReadFull(unknown, make([]byte, 10), 0))
	before := storagetest.Stat(t, a, "x.jsonl")
	a.write(t, "x.jsonl.gz", pack(second)) // in place
	require.NotEqual(t, before, storagetest.Stat(t, a, "x.jsonl"))
	require.ErrorIs(t, storage.ReadFull(known, make([]byte, len(first)), 0), storage.ErrStale)
	require.ErrorIs(t, storage.ReadFull(unknown, make([]byte, 10), 0), storage.ErrStale)
	require.Equal(t, second, storagetest.Read(t, a, "x.jsonl"))
}

// TestBounds: what there is no room for in memory goes to files.
func TestBounds(t *testing.T) {
	limit := budget.New(budget.Min)
	a := newArchive(t, limit)
	a.texts.Most = maxInMemory
	text := lines(maxInMemory - 1<<10)
	var open []*object
	for i := range 6 {
		open = append(open, a.open(t, pack(text[i:])))
		require.NoError(t, os.Remove(filepath.Join(a.dir, "x.jsonl.gz"))) // the next one is another file
		require.True(t, text[i:] == storagetest.ReadObject(t, open[i]))
	}
	require.LessOrEqual(t, limit.Held(), limit.Limit()/4)
	client := limit.Hold()
	require.NoError(t, client.Resize(limit.Limit()), "what idles is in nobody's way")
	require.Zero(t, limit.Idle())
	client.Close()
	for i, obj := range open {
		require.True(t, text[i:] == storagetest.ReadObject(t, obj), "it is unpacked again")
	}
	inFiles := 0
	for _, obj := range open {
		if obj.content.InFile() {
			inFiles++
		}
	}
	require.Positive(t, inFiles)
}

// TestNoDisk: without room for a temporary file there is an error that says what to do, small files are read nevertheless,
// and large ones when there is room.
func TestNoDisk(t *testing.T) {
	a := newArchive(t, nil)
	text := lines(large + step)
	a.write(t, "large.jsonl.gz", pack(text))
	a.write(t, "small.jsonl.gz", pack("small"))
	require.NoError(t, os.Remove(a.texts.Dir))
	_, err := read(a, "large.jsonl")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "TMPDIR")
	got, err := read(a, "small.jsonl")
	require.NoError(t, err)
	require.Equal(t, "small", got)
	require.NoError(t, os.Mkdir(a.texts.Dir, 0o700))
	got, err = read(a, "large.jsonl")
	require.NoError(t, err)
	require.True(t, text == got)
}

// TestManyReaders reads a file from several goroutines while what was unpacked is taken away.
func TestManyReaders(t *testing.T) {
	a := newArchive(t, nil)
	text := lines(large + step)
	obj := a.open(t, pack(text))
	var readers sync.WaitGroup
	for r := range 4 {
		readers.Go(func() {
			rng := rand.New(rand.NewPCG(9, uint64(r)))
			for range 25 {
				off := rng.IntN(len(text))
				p := make([]byte, 1000)
				n, err := obj.ReadAt(p, int64(off))
				want := text[off:min(off+len(p), len(text))]
				hasFailed := err != nil && err != io.EOF
				if hasFailed || string(p[:n]) != want {
					t.Error(off, n, err)
				}
				obj.drop()
			}
		})
	}
	readers.Wait()
}

// FuzzUnpack: what is read of a file is what another unpacker finds in it, and where that finds an error there is one.
func FuzzUnpack(f *testing.F) {
	text := lines(10_000)
	good := pack(text)
	f.Add(good)
	f.Add(append(bytes.Clone(good), good...))
	f.Add(append(bytes.Clone(good), "junk"...))
	f.Add(good[:len(good)/2])
	f.Add(append(bytes.Clone(good), good[:20]...))
	f.Add(pack(""))
	d, temporary := f.TempDir(), f.TempDir()
	files := sessiontest.OpenDir(f, d)
	f.Fuzz(func(t *testing.T, data []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(d, "x.jsonl.gz"), data, 0o600))
		want, wantErr := unpackOther(data)
		s := New(files, nil, temporary) // nothing known of the file before
		got, err := read(s, "x.jsonl")
		require.Equal(t, wantErr == nil, err == nil, "%v: %v", wantErr, err)
		if err == nil {
			require.Equal(t, string(want), got)
		} else {
			require.NotErrorIs(t, err, storage.ErrStale)
		}
	})
}

// unpackOther unpacks all members with the standard library, up to other trailing bytes.
func unpackOther(data []byte) (text []byte, err error) {
	in := bytes.NewReader(data)
	hasMember := true // the first one must be there
	for hasMember {
		rest := data[len(data)-in.Len():]
		more, err := unpackMember(in, rest)
		if err != nil {
			return nil, err
		}
		text = append(text, more...)
		if int64(len(text)) > gzipped.limitOf(int64(len(data))) {
			return nil, syscall.EFBIG
		}
		hasMember = bytes.HasPrefix(data[len(data)-in.Len():], []byte(member))
	}
	return text, nil
}

// unpackMember unpacks a member of a reader with the bytes rest.
func unpackMember(in *bytes.Reader, rest []byte) ([]byte, error) {
	if !bytes.HasPrefix(rest, []byte(member)) {
		return nil, gzip.ErrHeader
	}
	const reserved = 0xe0 // flags of RFC 1952 that the standard library does not check
	if len(rest) > len(member) && rest[len(member)]&reserved != 0 {
		return nil, gzip.ErrHeader
	}
	r, err := gzip.NewReader(in)
	if err != nil {
		return nil, err
	}
	r.Multistream(false)
	return io.ReadAll(io.LimitReader(r, freeSize+1))
}

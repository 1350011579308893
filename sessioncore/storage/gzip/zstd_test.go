package gzip

import (
	"bytes"
	"encoding/binary"
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage"
)

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

func newZstd(t *testing.T) *archive {
	a := newArchive(t, nil)
	a.format = zstandard
	return a
}

// TestZstd: what zstd compressed is shown with its size, and what is damaged or made to fill the disk is an error.
func TestZstd(t *testing.T) {
	text := lines(3 * step)
	good, told := packZstd(t, text, false), packZstd(t, text, true)
	change := func(at int) []byte {
		data := bytes.Clone(good)
		data[at] ^= 4
		return data
	}
	lies := bytes.Clone(told)
	at := bytes.Index(lies, binary.LittleEndian.AppendUint32(nil, uint32(len(text))))
	require.Positive(t, at)
	lies[at]++
	for name, c := range map[string]struct {
		data []byte
		want string
		err  error
	}{
		"as it should be":         {good, text, nil},
		"with its size":           {told, text, nil},
		"nothing in it":           {packZstd(t, "", true), "", nil},
		"two frames":              {append(bytes.Clone(told), good...), text + text, nil},
		"says another size":       {lies, "", syscall.EIO},
		"cut":                     {told[:len(told)/2], "", syscall.EIO},
		"cut, without its size":   {good[:len(good)/2], "", syscall.EIO},
		"half a header":           {good[:5], "", syscall.EIO},
		"a flipped bit":           {change(len(good) / 2), "", syscall.EIO},
		"junk after it":           {append(bytes.Clone(good), "junk"...), "", syscall.EIO},
		"something else":          {[]byte(text), "", storage.ErrNotRegular},
		"a bomb":                  {packZstd(t, strings.Repeat("x", 8<<20), false), "", syscall.EFBIG},
		"a bomb that says so":     {packZstd(t, strings.Repeat("x", 8<<20), true), "", syscall.EFBIG},
		"more memory than it may": {packZstd(t, lines(4<<20), false, zstd.WithWindowSize(2*maxWindow)), "", syscall.EIO},
	} {
		t.Run(name, func(t *testing.T) {
			a := newZstd(t)
			a.limitOf = func(int64) int64 { return 5 << 20 }
			a.write(t, "x.jsonl.zst", c.data)
			requireUnpacked(t, a, c.want, c.err)
		})
	}
}

// TestZstdMemory: to unpack a large file takes no more memory than a small one.
func TestZstdMemory(t *testing.T) {
	a := newZstd(t)
	a.limitOf = func(int64) int64 { return 1 << 30 }
	a.write(t, "x.jsonl.zst", packZstd(t, strings.Repeat(lines(1<<20), 100), false))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	obj, err := a.Open("x.jsonl")
	require.NoError(t, err)
	p := make([]byte, 4096)
	st, err := obj.Stat()
	require.NoError(t, err)
	require.NoError(t, storage.ReadFull(obj, p, st.Size-4096))
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20))
	require.NoError(t, obj.Close())
	names, err := filepath.Glob(filepath.Join(a.texts.Dir, "*"))
	require.NoError(t, err)
	require.Empty(t, names)
}

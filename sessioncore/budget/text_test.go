package budget

import (
	"io"
	"os"
	"os/signal"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const most, free = 64 << 10, 1 << 10

// newRoom returns a room of a new budget, and fails at the end of the test unless all was given back.
func newRoom(t *testing.T) *Room {
	limit := New(Min)
	r := &Room{Limit: limit, Memory: limit.Kept(), Most: most, Free: free, Dir: t.TempDir()}
	before := FileBytes()
	t.Cleanup(func() {
		require.Zero(t, limit.Held())
		require.Equal(t, before, FileBytes())
		left, err := os.ReadDir(r.Dir)
		require.NoError(t, err)
		require.Empty(t, left)
	})
	return r
}

// write appends to a text.
func write(t *testing.T, text *Text, more string) {
	t.Helper()
	_, err := text.Write([]byte(more))
	require.NoError(t, err)
}

// requireText requires the content of a text, and that reads at its end and behind it return io.EOF.
func requireText(t *testing.T, want string, text *Text) {
	t.Helper()
	require.Equal(t, int64(len(want)), text.Size())
	got, err := io.ReadAll(io.NewSectionReader(text, 0, int64(len(want))+1))
	require.NoError(t, err)
	require.True(t, want == string(got))
	end := len(want)
	for _, off := range []int{end - 1, end, end + 9} {
		n, err := text.ReadAt(make([]byte, 3), int64(off))
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, max(0, end-off), n)
	}
}

// TestText writes, cuts, moves and reads texts of several sizes, in memory and in files.
func TestText(t *testing.T) {
	for _, c := range []struct {
		size            int
		counted, inFile bool
		reserved        int64
	}{
		{size: 10},
		{size: free + 1, counted: true},
		{size: most, counted: true, reserved: most},
		{size: most + 1, inFile: true},
		{size: 10, inFile: true, reserved: most + 1},
	} {
		r := newRoom(t)
		text := r.New()
		want := strings.Repeat("x", c.size)
		require.Equal(t, c.reserved <= most, text.Reserve(c.reserved))
		write(t, text, want)
		require.Equal(t, c.inFile, text.InFile())
		require.Equal(t, c.counted, r.Limit.Idle() > 0)
		requireText(t, want, text)

		require.NoError(t, text.Cut(5))
		write(t, text, "more")
		requireText(t, "xxxxxmore", text)
		text.Spill()
		require.Equal(t, c.inFile || c.counted, text.InFile())
		requireText(t, "xxxxxmore", text)
		text.Retain()
		text.Close()
		requireText(t, "xxxxxmore", text)
		text.Close()
	}
}

// TestFull: what memory has no room for is in files, and caches are evicted before a write fails, which
// then leaves the text as it was.
func TestFull(t *testing.T) {
	r := newRoom(t)
	all := r.Limit.Hold()
	require.NoError(t, all.Resize(r.Limit.Limit()))
	text := r.New()
	require.False(t, text.Reserve(free+1))
	write(t, text, strings.Repeat("x", free+1))
	require.True(t, text.InFile())

	cached := r.New()
	write(t, cached, strings.Repeat("x", most+1))
	evicted := 0 // how often caches were asked to evict
	r.Limit.OnFull(func() {
		evicted++
		switch evicted {
		case 1:
			cached.Close()
		case 3:
			all.Close()
		}
	})
	before := MaxFileBytes
	defer func() { MaxFileBytes = before }()
	MaxFileBytes = FileBytes()
	second := r.New()
	write(t, second, strings.Repeat("x", most+1))
	require.Equal(t, 1, evicted)
	second.Close()

	small := r.New()
	write(t, small, strings.Repeat("x", free))
	require.NoError(t, os.Remove(r.Dir))
	_, err := small.Write([]byte("x"))
	require.ErrorContains(t, err, "set TMPDIR")
	require.Equal(t, 2, evicted)
	requireText(t, strings.Repeat("x", free), small)
	require.NoError(t, os.Mkdir(r.Dir, 0o700))
	write(t, small, "x")
	require.True(t, small.InFile())

	// A disk that takes a name but no byte.
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &limit))
	signal.Ignore(unix.SIGXFSZ)
	defer signal.Reset(unix.SIGXFSZ)
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Max: limit.Max}))
	third := r.New()
	_, err = third.Write([]byte(strings.Repeat("x", free+1)))
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &limit))
	require.NoError(t, err)
	require.Equal(t, 3, evicted)
	require.False(t, third.InFile())
	for _, text := range []*Text{text, small, third} {
		text.Close()
	}
}

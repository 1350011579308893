package nodes

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
)

// fakeFile is a control file whose lines are kept; one that begins with "bad" is refused. A line that
// begins with "{" is unfinished until it ends in "}".
type fakeFile struct {
	applied []string
	errs    []error
	busy    int // how many lines are refused before the next one is taken
	emptied int // how often last-error was emptied
}

var errBad = fmt.Errorf("%w: bad", sessioncore.ErrInvalid)

func (f *fakeFile) apply(_ context.Context, lines [][]byte) (results []string, done int, err error) {
	for _, line := range lines {
		if strings.HasPrefix(string(line), "bad") {
			return results, done, errBad
		}
		if f.busy > 0 {
			f.busy--
			return results, done, sessioncore.ErrBusy
		}
		f.applied = append(f.applied, string(line))
		results = append(results, "<"+string(line)+">")
		done++
	}
	return results, done, nil
}

func (f *fakeFile) unfinished(line []byte) bool {
	return strings.HasPrefix(string(line), "{") && !strings.HasSuffix(string(line), "}")
}

func (f *fakeFile) sync(context.Context) error { return nil }

func (f *fakeFile) refused(err error) syscall.Errno {
	f.errs = append(f.errs, err)
	return errnoOf(err)
}

func (f *fakeFile) errno(err error) syscall.Errno { return errnoOf(err) }

func (f *fakeFile) accepted() { f.emptied++ }

// step is a system call on the open file and what it answers.
type step struct {
	write string // what is written; "close" is a FLUSH, "read" a READ
	n     int    // -1: all of it
	errno syscall.Errno
	read  string
}

// TestControlHandle: how lines are cut from writes, and what the writer is told.
func TestControlHandle(t *testing.T) {
	notUnderRace(t)
	const all, none = -1, 0
	long := strings.Repeat("x", maxControlLine)
	for name, c := range map[string]struct {
		empty bool
		busy  int
		steps []step
		want  []string
	}{
		"nothing":                 {steps: []step{{write: "close"}, {write: "", n: all}, {write: "close"}, {write: "read"}}},
		"a line":                  {steps: []step{{write: "a\n", n: all}, {write: "close"}}, want: []string{"a"}},
		"no newline":              {steps: []step{{write: "a", n: all}, {write: "read"}, {write: "close"}, {write: "read", read: "<a>\n"}, {write: "close"}}, want: []string{"a"}},
		"in parts":                {steps: []step{{write: "a", n: all}, {write: "b", n: all}, {write: "\nc\nd", n: all}, {write: "e\n", n: all}}, want: []string{"ab", "c", "de"}},
		"empty lines":             {steps: []step{{write: "\n\na\n\n\nb\n\n", n: all}, {write: "\n", n: all}, {write: "close"}}, want: []string{"a", "b"}},
		"empty lines that count":  {empty: true, steps: []step{{write: "\na\n\n", n: all}, {write: "close"}, {write: "b", n: all}, {write: "\n", n: all}}, want: []string{"", "a", "", "b"}},
		"carriage returns stay":   {steps: []step{{write: "a\r\n\r\n", n: all}}, want: []string{"a\r", "\r"}},
		"a bad one":               {steps: []step{{write: "bad\n", n: none, errno: syscall.EINVAL}, {write: "a\n", n: none, errno: syscall.EINVAL}, {write: "close"}, {write: "a\n", n: none, errno: syscall.EINVAL}}},
		"a bad one in parts":      {steps: []step{{write: "ba", n: all}, {write: "d\n", n: none, errno: syscall.EINVAL}, {write: "a\n", n: none, errno: syscall.EINVAL}}},
		"a bad third":             {steps: []step{{write: "a\nb\nbad\nc\nd", n: 4}, {write: "bad\nc\nd", n: none, errno: syscall.EINVAL}, {write: "close"}}, want: []string{"a", "b"}},
		"empty lines before bad":  {steps: []step{{write: "a\n\n\nbad\n", n: 4}, {write: "bad\n", n: none, errno: syscall.EINVAL}}, want: []string{"a"}},
		"empty lines, then bad":   {steps: []step{{write: "\n\nbad\n", n: none, errno: syscall.EINVAL}}},
		"first ends, second bad":  {steps: []step{{write: "{1", n: all}, {write: "}\nbad\nx\n", n: 2}, {write: "bad\nx\n", n: none, errno: syscall.EINVAL}}, want: []string{"{1}"}},
		"a bad last":              {steps: []step{{write: "a\nbad", n: all}, {write: "close", errno: syscall.EINVAL}, {write: "close"}, {write: "b\n", n: none, errno: syscall.EINVAL}}, want: []string{"a"}},
		"a bad end, again":        {steps: []step{{write: "ba", n: all}, {write: "d\n", n: none, errno: syscall.EINVAL}, {write: "d\nc\n", n: none, errno: syscall.EINVAL}, {write: "d\nc\n", n: none, errno: syscall.EINVAL}}},
		"an empty bad end, again": {steps: []step{{write: "bad", n: all}, {write: "\n", n: none, errno: syscall.EINVAL}, {write: "\n", n: none, errno: syscall.EINVAL}, {write: "a\n", n: none, errno: syscall.EINVAL}}},
		"a beginning":             {steps: []step{{write: "{1", n: all}, {write: "close", errno: syscall.EINVAL}, {write: "2}\n", n: all}, {write: "close"}}, want: []string{"{12}"}},
		"whole without newline":   {steps: []step{{write: "{1}", n: all}, {write: "close"}, {write: "\n{2}\n", n: all}}, want: []string{"{1}", "{2}"}},
		"answers":                 {steps: []step{{write: "a\nb\n", n: all}, {write: "c\nbad\n", n: 2}, {write: "read", read: "<a>\n<b>\n<c>\n"}, {write: "read"}}, want: []string{"a", "b", "c"}},
		"the longest in parts":    {steps: []step{{write: long[1:], n: all}, {write: "x\n", n: all}}, want: []string{long}},
		"too long":                {steps: []step{{write: long + "x\na\n", n: none, errno: syscall.EFBIG}, {write: "b\n", n: none, errno: syscall.EFBIG}}},
		"too long after good":     {steps: []step{{write: "a\n" + long + "x\nb\n", n: 2}, {write: long + "x\nb\n", n: none, errno: syscall.EFBIG}, {write: "c\n", n: none, errno: syscall.EFBIG}}, want: []string{"a"}},
		"too long in parts":       {steps: []step{{write: long, n: all}, {write: "x", n: none, errno: syscall.EFBIG}, {write: "more", n: none, errno: syscall.EFBIG}, {write: "more\nb", n: none, errno: syscall.EFBIG}, {write: "b\n", n: none, errno: syscall.EFBIG}}},
		"too long, the last part": {steps: []step{{write: long, n: all}, {write: "x\n", n: none, errno: syscall.EFBIG}, {write: "b\n", n: none, errno: syscall.EFBIG}}},
		"too long and no newline": {steps: []step{{write: long + "x", n: none, errno: syscall.EFBIG}, {write: "close"}, {write: "x\nb\n", n: none, errno: syscall.EFBIG}, {write: "b\n", n: none, errno: syscall.EFBIG}}},
		"good, then too long":     {steps: []step{{write: "a\n" + long + "x", n: 2}, {write: long + "x", n: none, errno: syscall.EFBIG}, {write: "x\nbad\n", n: none, errno: syscall.EFBIG}, {write: "bad\n", n: none, errno: syscall.EFBIG}}, want: []string{"a"}},
		"busy, then taken":        {busy: 2, steps: []step{{write: "a\nb\n", n: none, errno: syscall.EBUSY}, {write: "a\nb\n", n: none, errno: syscall.EBUSY}, {write: "a\nb\n", n: all}, {write: "c\n", n: all}}, want: []string{"a", "b", "c"}},
		"busy, then another":      {busy: 1, steps: []step{{write: "a\nb\n", n: none, errno: syscall.EBUSY}, {write: "b\n", n: none, errno: syscall.EBUSY}, {write: "a\n", n: all}, {write: "b\n", n: all}}, want: []string{"a", "b"}},
		"busy, again in parts":    {busy: 1, steps: []step{{write: "{1}\n", n: none, errno: syscall.EBUSY}, {write: "{", n: all}, {write: "1}", n: all}, {write: "close"}, {write: "\nx\n", n: all}}, want: []string{"{1}", "x"}},
		"busy at the close":       {busy: 1, steps: []step{{write: "a", n: all}, {write: "close", errno: syscall.EBUSY}, {write: "a", n: all}, {write: "close"}}, want: []string{"a"}},
		"a short write ignored":   {steps: []step{{write: "a\nbad\n", n: 2}, {write: "c\n", n: none, errno: syscall.EINVAL}}, want: []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeFile{busy: c.busy}
			h := &controlHandle{file: f, empty: c.empty}
			for i, s := range c.steps {
				switch s.write {
				case "close":
					require.Equal(t, s.errno, h.Flush(t.Context()), "step %d", i)
				case "read":
					require.Equal(t, s.read, readAll(t, h), "step %d", i)
				default:
					n, errno := h.Write(t.Context(), []byte(s.write), int64(i*7))
					require.Equal(t, s.errno, errno, "step %d", i)
					want := s.n
					if want < 0 {
						want = len(s.write)
					}
					require.EqualValues(t, want, n, "step %d", i)
				}
			}
			require.Zero(t, h.Release(t.Context()))
			require.True(t, slices.Equal(c.want, f.applied), "want %.200q, got %.200q", c.want, f.applied)
		})
	}
}

func readAll(t *testing.T, h *controlHandle) string {
	var got strings.Builder
	for {
		buf := make([]byte, 3)
		r, errno := h.Read(t.Context(), buf, 1<<20+int64(got.Len()))
		require.Zero(t, errno)
		b, status := r.Bytes(buf)
		require.Equal(t, fuse.OK, status)
		if len(b) == 0 {
			return got.String()
		}
		got.Write(b)
	}
}

// TestAnswersGivenBack: who read more than he wanted goes back, and reads or writes on from there.
func TestAnswersGivenBack(t *testing.T) {
	var a answers
	read := func(size int, off int64) string {
		buf := make([]byte, size)
		return string(buf[:a.read(buf, off)])
	}
	a.add("one")
	a.add("two")
	require.Equal(t, "one\ntwo\n", read(128, 80))
	require.Equal(t, "two\n", read(128, 84), "back by four")
	require.Empty(t, read(128, 88))
	a.add("three")
	a.add("four")
	require.Equal(t, "three\nf", read(7, 88))
	a.back(94) // a write there
	a.add("five")
	require.Equal(t, "four\nfive\n", read(128, 200))
	require.Empty(t, read(128, 0), "elsewhere")
	require.Empty(t, read(128, 205), "it is gone")
}

// TestControlRelease: what is left of a line when the last descriptor is closed is refused, for last-error
// alone.
func TestControlRelease(t *testing.T) {
	f := &fakeFile{}
	h := &controlHandle{file: f}
	_, errno := h.Write(t.Context(), []byte("a\n{half"), 0)
	require.Zero(t, errno)
	require.Zero(t, h.Release(t.Context()))
	require.Len(t, f.errs, 1)
	require.ErrorIs(t, f.errs[0], sessioncore.ErrInvalid)
	require.Equal(t, []string{"a"}, f.applied)
}

// TestControlWriters cuts many texts into writes (FuzzControlWrites).
func TestControlWriters(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 1))
	for range 5_000 {
		var lines []string
		for range rnd.IntN(8) {
			lines = append(lines, []string{"", "a", "{json}", "bad", strings.Repeat("l", rnd.IntN(20)+1)}[rnd.IntN(5)])
		}
		text := strings.Join(lines, "\n")
		if rnd.IntN(2) == 0 {
			text += "\n"
		}
		writeInParts(t, text, rnd.Uint64())
	}
}

// FuzzControlWrites does it with any text.
func FuzzControlWrites(f *testing.F) {
	for _, text := range []string{"a\nb", "{json}\n\n\nbad\nc", "\x00\n\r\n", "bad", "\n", "{half"} {
		f.Add(text, uint64(1))
	}
	f.Fuzz(writeInParts)
}

// writeInParts: however a text is cut into writes, and with a writer that retries what a short write left, the lines
// before the first bad one take effect once, and those behind it in the same write never.
func writeInParts(t *testing.T, text string, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	file := &fakeFile{}
	var want []string
	isBad := false
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		isBad = strings.HasPrefix(line, "bad") || i == len(lines)-1 && file.unfinished([]byte(line))
		if isBad {
			break
		}
		if line != "" {
			want = append(want, line)
		}
	}
	h := &controlHandle{file: file}
	var failed error
	for rest := []byte(text); len(rest) > 0 && failed == nil; {
		chunk := rest[:1+rnd.IntN(len(rest))]
		for len(chunk) > 0 {
			n, errno := h.Write(t.Context(), chunk, 0)
			if errno != 0 {
				failed = errno
				break
			}
			require.NotZero(t, n, "a write that takes nothing and says nothing would be retried for ever")
			chunk, rest = chunk[n:], rest[n:]
		}
	}
	if failed == nil {
		if errno := h.Flush(t.Context()); errno != 0 {
			failed = errno
		}
	}
	require.Equal(t, isBad, failed != nil, "%q", text)
	if failed != nil {
		require.True(t, errors.Is(failed, syscall.EINVAL))
	}
	require.Equal(t, want, file.applied, "%q", text)
}

// notUnderRace skips a test that has one goroutine and takes long with the race detector. scripts/test runs it without.
func notUnderRace(t *testing.T) {
	t.Helper()
	if raceEnabled {
		t.Skip("it has one goroutine, and takes long with the race detector")
	}
}

// TestLinesAreCounted: the number of a refused line is that in all that was written to the open file, and last-error is
// emptied by an open file that ends without a refusal.
func TestLinesAreCounted(t *testing.T) {
	f := &fakeFile{}
	h := &controlHandle{file: f, writes: true}
	for _, text := range []string{"a\n\nb\n", "c\n", "d\n\n\nbad\ne\n"} {
		_, errno := h.Write(t.Context(), []byte(text), 0)
		require.Zero(t, errno)
	}
	for range 2 {
		_, errno := h.Write(t.Context(), []byte("bad\ne\n"), 0)
		require.Equal(t, syscall.EINVAL, errno)
	}
	require.Len(t, f.errs, 1, "the first reason stays")
	require.EqualError(t, f.errs[0], "line 8: not a valid entry: bad (4 applied)")
	require.Zero(t, h.Flush(t.Context()))
	require.Zero(t, f.emptied)
	h = &controlHandle{file: f, writes: true}
	require.Zero(t, h.Flush(t.Context()))
	require.Equal(t, 1, f.emptied)
}

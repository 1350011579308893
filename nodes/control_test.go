package nodes

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/budget"
)

// fakeFile is a control file whose lines are kept; one that begins with "bad" is refused. A line that
// begins with "{" is unfinished until it ends in "}".
type fakeFile struct {
	ControlFile
	applied []string
	busy    int // how many lines are refused with ErrBusy before the next one is accepted
}

var errBad = fmt.Errorf("%w: bad", sessioncore.ErrInvalid)

// newFake returns the append of a session called s, whose open handles count in a budget.
func newFake(memory *budget.Budget) *fakeFile {
	f := &fakeFile{}
	in := NewDirectory(&View{Log: slog.New(slog.DiscardHandler), Memory: memory})
	f.in = &in
	f.sessionName = "s"
	f.do = f.apply
	f.isPartial = unfinished
	return f
}

func (f *fakeFile) open() *controlHandle {
	return &controlHandle{file: &f.ControlFile, hold: f.view().Memory.Hold()}
}

// lastError returns why a line was refused, as last-error says it.
func (f *fakeFile) lastError() string {
	last, _ := f.view().refusals.get("s")
	return last
}

// apply implements applyLines. The result of a line is the line in angle brackets.
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

// unfinished is the isPartial of a fakeFile.
func unfinished(line []byte) bool {
	begins := strings.HasPrefix(string(line), "{")
	ends := strings.HasSuffix(string(line), "}")
	return begins && !ends
}

// step is a system call on the open file and what it answers.
type step struct {
	write string // what is written; "close" is a FLUSH, "read" a READ
	n     int    // how much of it is taken
	errno syscall.Errno
	read  string
}

func all(text string) step            { return step{write: text, n: len(text)} }
func part(n int, text string) step    { return step{write: text, n: n} }
func invalid(text string) step        { return step{write: text, errno: syscall.EINVAL} }
func busy(text string) step           { return step{write: text, errno: syscall.EBUSY} }
func tooLong(text string) step        { return step{write: text, errno: syscall.EFBIG} }
func closed(errno syscall.Errno) step { return step{write: "close", errno: errno} }
func reads(text string) step          { return step{write: "read", read: text} }

// TestControlHandle: how lines are cut from writes, and what the writer is told.
func TestControlHandle(t *testing.T) {
	defer func(n int) { maxControlLine = n }(maxControlLine)
	maxControlLine = 1 << 16
	long := strings.Repeat("x", maxControlLine)
	for name, c := range map[string]struct {
		empty bool
		busy  int
		steps []step
		want  []string
	}{
		"nothing":                 {steps: []step{closed(0), all(""), closed(0), reads("")}},
		"a line":                  {steps: []step{all("a\n"), closed(0)}, want: []string{"a"}},
		"no newline":              {steps: []step{all("a"), reads(""), closed(0), reads("<a>\n"), closed(0)}, want: []string{"a"}},
		"in parts":                {steps: []step{all("a"), all("b"), all("\nc\nd"), all("e\n")}, want: []string{"ab", "c", "de"}},
		"empty lines":             {steps: []step{all("\n\na\n\n\nb\n\n"), all("\n"), closed(0)}, want: []string{"a", "b"}},
		"empty lines that count":  {empty: true, steps: []step{all("\na\n\n"), closed(0), all("b"), all("\n")}, want: []string{"", "a", "", "b"}},
		"carriage returns stay":   {steps: []step{all("a\r\n\r\n")}, want: []string{"a\r", "\r"}},
		"a bad one":               {steps: []step{invalid("bad\n"), invalid("a\n"), closed(0), invalid("a\n")}},
		"a bad one in parts":      {steps: []step{all("ba"), invalid("d\n"), invalid("a\n")}},
		"a bad third":             {steps: []step{part(4, "a\nb\nbad\nc\nd"), invalid("bad\nc\nd"), closed(0)}, want: []string{"a", "b"}},
		"empty lines before bad":  {steps: []step{part(4, "a\n\n\nbad\n"), invalid("bad\n")}, want: []string{"a"}},
		"empty lines, then bad":   {steps: []step{invalid("\n\nbad\n")}},
		"first ends, second bad":  {steps: []step{all("{1"), part(2, "}\nbad\nx\n"), invalid("bad\nx\n")}, want: []string{"{1}"}},
		"a bad last":              {steps: []step{all("a\nbad"), closed(syscall.EINVAL), closed(0), invalid("b\n")}, want: []string{"a"}},
		"a bad end, again":        {steps: []step{all("ba"), invalid("d\n"), invalid("d\nc\n"), invalid("d\nc\n")}},
		"an empty bad end, again": {steps: []step{all("bad"), invalid("\n"), invalid("\n"), invalid("a\n")}},
		"a beginning":             {steps: []step{all("{1"), closed(syscall.EINVAL), all("2}\n"), closed(0)}, want: []string{"{12}"}},
		"whole without newline":   {steps: []step{all("{1}"), closed(0), all("\n{2}\n")}, want: []string{"{1}", "{2}"}},
		"answers":                 {steps: []step{all("a\nb\n"), part(2, "c\nbad\n"), reads("<a>\n<b>\n<c>\n"), reads("")}, want: []string{"a", "b", "c"}},
		"the longest in parts":    {steps: []step{all(long[1:]), all("x\n")}, want: []string{long}},
		"too long":                {steps: []step{tooLong(long + "x\na\n"), tooLong("b\n")}},
		"too long after good":     {steps: []step{part(2, "a\n"+long+"x\nb\n"), tooLong(long + "x\nb\n"), tooLong("c\n")}, want: []string{"a"}},
		"too long in parts":       {steps: []step{all(long), tooLong("x"), tooLong("more"), tooLong("more\nb"), tooLong("b\n")}},
		"too long, the last part": {steps: []step{all(long), tooLong("x\n"), tooLong("b\n")}},
		"too long and no newline": {steps: []step{tooLong(long + "x"), closed(0), tooLong("x\nb\n"), tooLong("b\n")}},
		"good, then too long":     {steps: []step{part(2, "a\n"+long+"x"), tooLong(long + "x"), tooLong("x\nbad\n"), tooLong("bad\n")}, want: []string{"a"}},
		"busy, then taken":        {busy: 2, steps: []step{busy("a\nb\n"), busy("a\nb\n"), all("a\nb\n"), all("c\n")}, want: []string{"a", "b", "c"}},
		"busy, then another":      {busy: 1, steps: []step{busy("a\nb\n"), busy("b\n"), all("a\n"), all("b\n")}, want: []string{"a", "b"}},
		"busy, again in parts":    {busy: 1, steps: []step{busy("{1}\n"), all("{"), all("1}"), closed(0), all("\nx\n")}, want: []string{"{1}", "x"}},
		"busy, then a bad one":    {busy: 1, steps: []step{busy("a\n"), part(2, "a\nbad\n"), invalid("bad\n"), invalid("a\n")}, want: []string{"a"}},
		"busy, half again":        {busy: 1, steps: []step{busy("ab\n"), all("a"), closed(0), busy("c\n"), all("ab\n")}, want: []string{"ab"}},
		"an empty one, busy":      {empty: true, busy: 1, steps: []step{busy("\n"), closed(0)}},
		"busy at the close":       {busy: 1, steps: []step{all("a"), closed(syscall.EBUSY), all("a"), closed(0)}, want: []string{"a"}},
		"a short write ignored":   {steps: []step{part(2, "a\nbad\n"), invalid("c\n")}, want: []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(nil)
			f.busy = c.busy
			f.empty = c.empty
			h := f.open()
			for i, s := range c.steps {
				switch s.write {
				case "close":
					require.Equal(t, s.errno, h.Flush(t.Context()), "step %d", i)
				case "read":
					require.Equal(t, s.read, readAll(t, h), "step %d", i)
				default:
					anyOffset := int64(i * 7) // it has no meaning
					n, errno := h.Write(t.Context(), []byte(s.write), anyOffset)
					require.Equal(t, s.errno, errno, "step %d", i)
					require.EqualValues(t, s.n, n, "step %d", i)
				}
			}
			h.Close()
			require.True(t, slices.Equal(c.want, f.applied), "want %.200q, got %.200q", c.want, f.applied)
		})
	}
}

// readAll reads all results, a few bytes at a time, from an offset on that no write had.
func readAll(t *testing.T, h *controlHandle) string {
	const begin = 1 << 20
	var got strings.Builder
	for {
		buf := make([]byte, 3)
		n, err := h.ReadAt(t.Context(), buf, begin+int64(got.Len()))
		require.NoError(t, err)
		if n == 0 {
			return got.String()
		}
		got.Write(buf[:n])
	}
}

// write writes a text and returns the error.
func write(h *controlHandle, text string) syscall.Errno {
	_, errno := h.Write(context.Background(), []byte(text), 0)
	return errno
}

// TestSingleLine: a file of one line takes that in any number of writes, and refuses more. Empty lines
// before it are ignored.
func TestSingleLine(t *testing.T) {
	for _, c := range []struct {
		writes  []string
		applied []string
		refusal string
	}{
		{writes: []string{"a\n"}, applied: []string{"a"}},
		{writes: []string{"a", "b\n"}, applied: []string{"ab"}},
		{writes: []string{"\na\n"}, applied: []string{"a"}},
		{writes: []string{"\na", "\n"}, applied: []string{"a"}},
		{writes: []string{"a\nb\n"}, refusal: "line 2: "},
		{writes: []string{"a\nb"}, refusal: "line 2: "},
		{writes: []string{"a\n", "b"}, applied: []string{"a"}, refusal: "line 2: "},
	} {
		f := newFake(nil)
		f.single = true
		h := f.open()
		for _, text := range c.writes {
			_ = write(h, text)
		}
		require.Equal(t, c.applied, f.applied, "%q", c.writes)
		if c.refusal == "" {
			require.Empty(t, f.lastError(), "%q", c.writes)
		} else {
			require.Contains(t, f.lastError(), c.refusal, "%q", c.writes)
		}
		h.Close()
	}
}

// TestAnswersGivenBack: a program that read more than it wanted goes back, and reads or writes on from there.
func TestAnswersGivenBack(t *testing.T) {
	var a answers
	read := func(size int, off int64) string {
		buf := make([]byte, size)
		n := a.read(buf, off)
		return string(buf[:n])
	}
	a.add("one")
	a.add("two")
	require.Equal(t, "one\ntwo\n", read(128, 80))
	require.Equal(t, "two\n", read(128, 84), "back by four")
	require.Empty(t, read(128, 88))
	a.add("three")
	a.add("four")
	require.Equal(t, "three\nf", read(7, 88))
	a.unread(94) // a write there
	a.add("five")
	require.Equal(t, "four\nfive\n", read(128, 200))
	require.Empty(t, read(128, 0), "elsewhere")
	require.Empty(t, read(128, 205), "it is gone")
}

// TestControlRelease: what is left of a line when the last descriptor is closed is refused, for last-error
// alone.
func TestControlRelease(t *testing.T) {
	f := newFake(nil)
	h := f.open()
	require.Zero(t, write(h, "a\n{half"))
	h.Close()
	require.Contains(t, f.lastError(), errUnfinished.Error())
	require.Equal(t, []string{"a"}, f.applied)

	h = f.open()
	require.Zero(t, write(h, "{half"))
	require.Equal(t, syscall.EINVAL, h.Flush(t.Context()))
	require.Equal(t, syscall.EINVAL, write(f.open(), "bad\n"))
	h.Close()
	require.NotContains(t, f.lastError(), errUnfinished.Error(), "the kernel may release a file after the next is written")
}

// FuzzControlWrites cuts many texts into writes.
func FuzzControlWrites(f *testing.F) {
	rnd := rand.New(rand.NewPCG(3, 1))
	for range 2_000 {
		var lines []string
		for range rnd.IntN(8) {
			letters := strings.Repeat("l", rnd.IntN(20)+1)
			kinds := []string{"", "a", "{json}", "{half", "bad", "\x00\r", letters}
			lines = append(lines, kinds[rnd.IntN(len(kinds))])
		}
		text := strings.Join(lines, "\n")
		text += strings.Repeat("\n", rnd.IntN(2)) // most often the last line has an end
		f.Add(text, rnd.Uint64())
	}
	f.Fuzz(writeInParts)
}

// writeInParts: however a text is cut into writes, and with a writer that retries what a short write left, the lines
// before the first bad one take effect once, and those behind it in the same write never.
func writeInParts(t *testing.T, text string, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	file := newFake(nil)
	want, isBad := linesBeforeBad(text)
	h := file.open()
	var errno syscall.Errno
	rest := []byte(text)
	for len(rest) > 0 && errno == 0 {
		size := 1 + rnd.IntN(len(rest))
		errno = writeWhole(t, h, rest[:size])
		rest = rest[size:]
	}
	if errno == 0 {
		errno = h.Flush(t.Context())
	}
	if isBad {
		require.Equal(t, syscall.EINVAL, errno, "%q", text)
	} else {
		require.Zero(t, errno, "%q", text)
	}
	require.Equal(t, want, file.applied, "%q", text)
}

// linesBeforeBad returns the lines of a text before the first that a fakeFile refuses, without empty ones, and
// whether there is such a line.
func linesBeforeBad(text string) (good []string, isBad bool) {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		isLast := i == len(lines)-1
		isPartial := isLast && unfinished([]byte(line))
		if isPartial || strings.HasPrefix(line, "bad") {
			return good, true
		}
		if line != "" {
			good = append(good, line)
		}
	}
	return good, false
}

// writeWhole writes a chunk like a program that retries the rest of a short write, and returns the errno at which it
// gives up.
func writeWhole(t *testing.T, h *controlHandle, chunk []byte) syscall.Errno {
	for len(chunk) > 0 {
		n, errno := h.Write(t.Context(), chunk, 0)
		if errno != 0 {
			return errno
		}
		require.NotZero(t, n, "a write that takes nothing and says nothing would be retried for ever")
		chunk = chunk[n:]
	}
	return 0
}

// TestLinesAreCounted: the number of a refused line is that in all that was written to the open file, and last-error is
// emptied by an open file that ends without a refusal.
func TestLinesAreCounted(t *testing.T) {
	f := newFake(nil)
	h := f.open()
	h.writes = true
	for _, text := range []string{"a\n\nb\n", "c\n", "d\n\n\nbad\ne\n"} {
		require.Zero(t, write(h, text))
	}
	require.Equal(t, syscall.EINVAL, write(h, "bad\ne\n"))
	first := f.lastError()
	require.Contains(t, first, "line 8: not a valid entry: bad (4 applied)")
	require.Equal(t, syscall.EINVAL, write(h, "bad\ne\n"))
	require.Zero(t, h.Flush(t.Context()))
	require.Equal(t, first, f.lastError(), "the first reason stays")
	h = f.open()
	h.writes = true
	require.Zero(t, h.Flush(t.Context()))
	require.Empty(t, f.lastError())
}

// TestPendingLinesAreBounded: whoever asks for more than there is gets ENOMEM, with a reason, and the rest of that line
// fails too; the others go on. When all are closed nothing is held.
func TestPendingLinesAreBounded(t *testing.T) {
	b := budget.New(budget.Min)
	part := strings.Repeat("x", 1<<20)
	var files []*controlHandle
	f := newFake(b)
	var refused *controlHandle
	for refused == nil {
		h := f.open()
		files = append(files, h)
		for range 4 {
			errno := write(h, part)
			if errno != 0 {
				refused = h
				break
			}
		}
		require.LessOrEqual(t, b.Held(), b.Limit())
	}
	require.Contains(t, f.lastError(), "-o memory=")
	require.Greater(t, b.Held(), b.Limit()/2)
	for _, text := range []string{part, "rest\n", "next\n"} {
		require.Equal(t, syscall.ENOMEM, write(refused, text), "the rest of the line, and the lines behind it")
	}
	require.Zero(t, write(files[0], "\n"))
	require.Equal(t, []string{strings.Repeat(part, 4)}, f.applied)
	for _, h := range files {
		h.Close()
	}
	require.Zero(t, b.Held())
}

// TestTooLongBeforeNoMemory: a line that is too long is found to be so in the memory that the longest one takes, which is
// taken, whatever the sizes of the writes.
func TestTooLongBeforeNoMemory(t *testing.T) {
	defer func(n int) { maxControlLine = n }(maxControlLine)
	maxControlLine = 9 << 20
	line := strings.Repeat("x", maxControlLine) + "\n"
	for _, size := range []int{100_001, 1008 << 10, 1<<20 - 42, 1 << 20} {
		b := budget.New(budget.Min)
		other := b.Hold()
		require.NoError(t, other.Resize(b.Limit()-10<<20))
		f := newFake(b)
		h := f.open()
		h.mute = true
		for part := range slices.Chunk([]byte(line), size) {
			require.Zero(t, write(h, string(part)), f.lastError())
		}
		require.Len(t, f.applied, 1)
		require.True(t, f.applied[0] == line[:maxControlLine], "the whole line")
		var errno syscall.Errno
		for errno == 0 {
			errno = write(h, line[:size])
		}
		require.Equal(t, syscall.EFBIG, errno, f.lastError())
		h.Close()
		other.Close()
		require.Zero(t, b.Held())
	}
}

// TestAnswersAreBounded: a program that reads no answers is refused before a line takes effect, and can go on after
// it has read them. Without answers, lines that were written whole cost nothing.
func TestAnswersAreBounded(t *testing.T) {
	b := budget.New(budget.Min)
	f := newFake(b)
	h := f.open()
	line := strings.Repeat("y", 1<<20) + "\n"
	written := 0
	errno := write(h, line)
	for ; errno == 0; errno = write(h, line) {
		written++
		require.Less(t, b.Held(), 2*b.Limit())
	}
	require.Equal(t, syscall.ENOMEM, errno)
	require.Len(t, f.applied, written, "the refused one took no effect")
	buf := make([]byte, 1<<20)
	for read, want := 0, written*(len(line)+2); read < want; {
		n, err := h.ReadAt(t.Context(), buf, int64(read))
		require.NoError(t, err)
		require.NotZero(t, n)
		read += n
	}
	_, errno = h.Write(t.Context(), []byte(line), 1<<40)
	require.Zero(t, errno)
	h.Close()
	require.Zero(t, b.Held())

	mute := f.open()
	mute.mute = true
	for range 100 {
		require.Zero(t, write(mute, "a line\n"))
		require.Zero(t, b.Held())
	}
}

// TestFsyncFails: the caller of fsync gets the error, and last-error has it.
func TestFsyncFails(t *testing.T) {
	f := newFake(budget.New(budget.Min))
	for _, err := range []error{nil, syscall.EIO, fmt.Errorf("fsync s: %w", syscall.ENOSPC), sessioncore.ErrReadOnly} {
		f.makeDurable = func(context.Context) error { return err }
		require.Equal(t, Errno(err), f.Sync(t.Context()))
		if err != nil {
			require.Contains(t, f.lastError(), err.Error())
		}
	}
}

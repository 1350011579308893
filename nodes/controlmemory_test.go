package nodes

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/budget"
)

// openControl returns an open control file of a user.
func openControl(b *budget.Budget, user uint32, f *fakeFile) *controlHandle {
	return &controlHandle{file: f, memory: b, hold: b.Hold()}
}

// TestPendingLinesAreBounded: whoever asks for more than there is gets ENOMEM, with a reason, and the rest of that line
// fails too; the others go on. When all are closed nothing is held.
func TestPendingLinesAreBounded(t *testing.T) {
	b := budget.New(budget.Min)
	part := strings.Repeat("x", 1<<20)
	var files []*controlHandle
	f := &fakeFile{}
	var errno syscall.Errno
	for errno == 0 {
		h := openControl(b, 1, f)
		files = append(files, h)
		for n := 0; n < 4 && errno == 0; n++ {
			_, errno = h.Write(t.Context(), []byte(part), 0)
		}
		require.LessOrEqual(t, b.Held(), b.Limit())
	}
	require.Equal(t, syscall.ENOMEM, errno)
	require.ErrorContains(t, f.errs[0], "-o memory=")
	require.Greater(t, b.Held(), b.Limit()/2)
	refused, other := files[len(files)-1], files[0]
	for _, rest := range []string{part, "rest\n"} {
		_, errno = refused.Write(t.Context(), []byte(rest), 0)
		require.Equal(t, syscall.ENOMEM, errno, "the rest of the line")
	}
	_, errno = refused.Write(t.Context(), []byte("next\n"), 0)
	require.Equal(t, syscall.ENOMEM, errno, "and what follows")
	_, errno = other.Write(t.Context(), []byte("\n"), 0)
	require.Zero(t, errno)
	require.Equal(t, []string{strings.Repeat(part, 4)}, f.applied)
	for _, h := range files {
		require.Zero(t, h.Release(t.Context()))
	}
	require.Zero(t, b.Held())
}

// TestAnswersAreBounded: a program that reads no answers is refused before a line takes effect, and can go on after
// it has read them.
func TestAnswersAreBounded(t *testing.T) {
	b := budget.New(budget.Min)
	f := &fakeFile{}
	h := openControl(b, 1, f)
	line := strings.Repeat("y", 1<<20) + "\n"
	written := 0
	for {
		_, errno := h.Write(t.Context(), []byte(line), 0)
		if errno != 0 {
			require.Equal(t, syscall.ENOMEM, errno)
			break
		}
		written++
		require.Less(t, b.Held(), 2*b.Limit())
	}
	require.Len(t, f.applied, written, "the refused one took no effect")
	buf := make([]byte, 1<<20)
	for read, want := 0, written*(len(line)+2); read < want; {
		r, errno := h.Read(t.Context(), buf, int64(read))
		require.Zero(t, errno)
		got, _ := r.Bytes(buf)
		require.NotEmpty(t, got)
		read += len(got)
	}
	_, errno := h.Write(t.Context(), []byte(line), 1<<40)
	require.Zero(t, errno)
	require.Zero(t, h.Release(t.Context()))
	require.Zero(t, b.Held())
}

// TestMutedHandleHoldsNothing: what is written in whole lines to a file that is not read costs nothing.
func TestMutedHandleHoldsNothing(t *testing.T) {
	b := budget.New(budget.Min)
	h := openControl(b, 1, &fakeFile{})
	h.mute = true
	for range 100 {
		_, errno := h.Write(t.Context(), []byte("a line\n"), 0)
		require.Zero(t, errno)
		require.Zero(t, b.Held())
	}
}

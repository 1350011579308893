package sessioncore

import (
	"fmt"
	"testing"

	"sessionfs/sessioncore/internal/sessiontest"

	"github.com/stretchr/testify/require"
)

var at, labelAt, moveAt = sessiontest.At, sessiontest.LabelAt, sessiontest.MoveAt

// TestBranchNames: what branches/ has, and what it does not have.
func TestBranchNames(t *testing.T) {
	s := snapshotOf(t, sessiontest.Header+at(1, "current", "", "")+at(2, "a", "", "")+`{"type":"custom"}`+"\n"+at(3, "a", "", ""))
	for name, want := range map[string]Entry{"%63urrent": 0, "a~3": 1, "a": 3} {
		e, err := s.FindBranch(name, "current")
		require.NoError(t, err, name)
		require.Equal(t, want, e, name)
		require.Equal(t, name, s.Name(e, "current"))
	}
	e, err := s.FindBranch("current")
	require.NoError(t, err)
	require.Equal(t, Entry(0), e)
	for _, name := range []string{"current", "~4", "a~2", "b", "%61", ".by-id", ""} {
		_, err := s.FindBranch(name, "current")
		require.ErrorIs(t, err, ErrNotFound, name)
	}
	_, err = s.FindBranch("%63urrent")
	require.ErrorIs(t, err, ErrNotFound)
}

// TestBranchesAreKept: the paths asked for last are made once, and no more than those are kept.
func TestBranchesAreKept(t *testing.T) {
	text := sessiontest.Header
	for i := range 10 {
		text += at(i, fmt.Sprint("e", i), "", "")
	}
	s := snapshotOf(t, text)
	first := s.Branch(0)
	for e := Entry(1); e < maxBranches; e++ {
		s.Branch(e)
	}
	require.Same(t, first, s.Branch(0))
	s.Branch(maxBranches)
	require.Same(t, first, s.Branch(0), "looked at just before")
	for e := range Entry(10) {
		require.Equal(t, []Entry{e}, s.Branch(e).Entries())
		require.LessOrEqual(t, len(s.branches), maxBranches)
	}
	require.NotSame(t, first, s.Branch(0))
}

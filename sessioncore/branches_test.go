package sessioncore

import (
	"fmt"
	"strings"
	"testing"

	"sessionfs/sessioncore/internal/sessiontest"

	"github.com/stretchr/testify/require"
)

// at is an entry at second n under a parent.
func at(n int, id, parent, more string) string {
	p := "null"
	if parent != "" {
		p = `"` + parent + `"`
	}
	return fmt.Sprintf(`{"type":"custom","id":"%s","parentId":%s,"timestamp":"2026-01-05T09:00:%02d.000Z"%s}`+"\n", id, p, n, more)
}

func labelAt(n int, id, parent, target, label string) string {
	return strings.Replace(at(n, id, parent, `,"targetId":"`+target+`","label":"`+label+`"`), `"custom"`, `"label"`, 1)
}

func moveAt(n int, id, parent, target string) string {
	if target != "null" {
		target = `"` + target + `"`
	}
	return at(n, id, parent, `,"customType":"sessionfs/leaf","data":{"targetId":`+target+`}`)
}

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

package sessioncore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/sessiontest"
)

// TestShortNames: a name has eight characters of an id, or as many as tell it from the entries before it.
func TestShortNames(t *testing.T) {
	sessiontest.Page(t, "testdata/short-names.txt", func(t *testing.T, _, give, want string) {
		text, short := sessiontest.Header, ""
		for i, id := range strings.Split(give, "\n") {
			text += at(i+1, id, "", "")
		}
		s := snapshotOf(t, text)
		for e := range Entry(s.Len()) {
			name := s.ShortName(e)
			short += name + "\n"
			for before := range e {
				require.False(t, strings.HasPrefix(s.Name(before), name) && name != s.Name(e), "%s begins %s too", name, s.Name(before))
			}
		}
		require.Equal(t, want, short)
	})
}

// TestBeginningsOfIDs: one id begins with it, several do, or none; a whole id always counts.
func TestBeginningsOfIDs(t *testing.T) {
	text := sessiontest.Header
	for i, id := range []string{"abc", "abcd", "abxy", "x", "x"} {
		text += at(i+1, id, "missing", "")
	}
	for i := range 12 {
		text += at(10+i, fmt.Sprint("many-", i), "", "")
	}
	s := snapshotOf(t, text)
	for key, want := range map[string]Entry{"abc": 0, "abcd": 1, "abx": 2, "x": 4, "many-11": 16} {
		e, err := s.FindBeginning(key)
		require.NoError(t, err, key)
		require.Equal(t, want, e, key)
	}
	for _, key := range []string{"", "b", "miss", "ABC", "abcde"} {
		_, err := s.FindBeginning(key)
		require.ErrorIs(t, err, ErrNotFound, key)
	}
	_, err := s.FindBeginning("ab")
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, "type more of one: abc, abcd, abxy")
	_, err = s.FindBeginning("many")
	require.ErrorContains(t, err, "many-9, …")
}

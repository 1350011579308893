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
	text := sessiontest.Header
	ids := []string{
		"0a1b2c3d", "0198a000-0000-7000-8000-000000000001", "0198a000-0000-7000-8000-000000000002", "0198a000-1000-7000-8000-000000000003", "short",
		"été-à-la-mer", "été-à-la-montagne", "0198a000-0000-7000-8000-000000000001-2", "a/b/c/d/e/f/g/h", "0198a0", "zzzzzzzzz", "twice-the-same",
		"twice-the-same",
	}
	for i, id := range ids {
		text += at(i+1, id, "", "")
	}
	s := snapshotOf(t, text)
	want := []string{
		"0a1b2c3d", "0198a000", "0198a000-0000-7000-8000-000000000002", "0198a000-1", "short",
		"été-à-la", "été-à-la-mo", "0198a000-0000-7000-8000-000000000001-", "a%2Fb%2Fc%2Fd%2Fe%2Ff%2Fg%2Fh", "0198a0", "zzzzzzzz", "twice-the-same~13",
		"twice-the-same",
	}
	for e, name := range want {
		require.Equal(t, name, s.ShortName(Entry(e)))
		for before := range Entry(e) {
			require.False(t, strings.HasPrefix(s.Name(before), name) && len(name) < len(ids[e]), "%s begins %s too", name, s.Name(before))
		}
	}
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

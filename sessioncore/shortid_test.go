package sessioncore

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/sessiontest"
)

// TestShortNames: a name has eight characters of an id, or as many as tell it from the entries before it.
func TestShortNames(t *testing.T) {
	sessiontest.Page(t, "testdata/short-names.txt", func(t *testing.T, _, give, want string) {
		text := sessiontest.Header
		short := ""
		for i, id := range strings.Split(give, "\n") {
			text += at(i+1, id, "", "")
		}
		s := snapshotOf(t, text)
		for e := range Entry(s.Len()) {
			name := s.ShortName(e)
			short += name + "\n"
			isWhole := name == s.Name(e)
			for before := range e {
				isShared := strings.HasPrefix(s.Name(before), name)
				require.False(t, isShared && !isWhole, "%s begins %s too", name, s.Name(before))
			}
		}
		require.Equal(t, want, short)
	})
}

// TestBeginningsOfIDs: an entry is found by its id or a beginning that no other id has; else the error lists some candidates.
func TestBeginningsOfIDs(t *testing.T) {
	text := sessiontest.Header
	for i, id := range []string{"abc", "abcd", "abxy", "x", "x"} {
		text += at(i+1, id, "missing", "")
	}
	for i := range 12 {
		text += at(10+i, fmt.Sprint("many-", i), "", "")
	}
	s := snapshotOf(t, text)
	sessiontest.Table(t, "testdata/beginnings.txt", func(t *testing.T, _, key string) string {
		e, err := s.FindBeginning(key)
		switch {
		case errors.Is(err, ErrNotFound):
			return "not found"
		case err != nil:
			require.ErrorIs(t, err, ErrInvalid)
			return err.Error()
		}
		return fmt.Sprint(e)
	})
}

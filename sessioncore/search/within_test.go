package search

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestIsWithin: a directory and what is below it count, by the names in the path, in POSIX form or that of Windows.
func TestIsWithin(t *testing.T) {
	for _, c := range []struct {
		cwd  string
		dirs []string
		want bool
	}{
		{"/w/tide", []string{"/w/tide"}, true},
		{"/w/tide/", []string{"/w/tide"}, true},
		{"/w/tide/sub/dir", []string{"/w/tide"}, true},
		{"/w/tide/sub/..", []string{"/w/tide"}, true},
		{"/w/tide/../other", []string{"/w/tide"}, false},
		{"/w/tide-2", []string{"/w/tide"}, false},
		{"/w", []string{"/w/tide"}, false},
		{"/W/tide", []string{"/w/tide"}, false},
		{"/elsewhere/x", []string{"/w/tide", "/elsewhere"}, true},
		{"/w/tide", []string{"/"}, true},
		{`c:\work\Tide`, []string{`C:\Work`}, true},
		{`C:\Work`, []string{"/"}, true},
		{"", []string{"/"}, false},
		{"tide", []string{"/"}, false},
		{"/w", nil, false},
	} {
		require.Equal(t, c.want, IsWithin(c.cwd, c.dirs), c)
	}
}

package secrets

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/sessiontest"
)

// TestOwnRules: rules of a file are used beside the known ones, with all that gitleaks has for them.
func TestOwnRules(t *testing.T) {
	rules, err := Read("testdata/rules.toml")
	require.NoError(t, err)
	lines("testdata/own.txt", func(text string) {
		text, want, _ := strings.Cut(text, " → ")
		line := `{"text":` + plain(text) + `}`
		s := &Scan{Rules: rules}
		require.NoError(t, s.Extend(t.Context(), strings.NewReader(line), int64(len(line))))
		require.Equal(t, `{"text":`+plain(want)+`}`, masked(s, line))
	})
	known := Known()
	require.True(t, rules.In("badge-1234-hidden"))
	require.False(t, known.In("badge-1234-hidden"))
	require.Same(t, known, Known())
	require.True(t, known.In("npm"+"_"+mixed(36)), "the known rules stay what they are")
}

// TestBadRules: a file that cannot be used as it is meant is refused, with what of it and where.
func TestBadRules(t *testing.T) {
	name := filepath.Join(t.TempDir(), "rules.toml")
	sessiontest.Page(t, "testdata/bad.txt", func(t *testing.T, what, rules, want string) {
		sessiontest.WriteFile(t, name, rules)
		_, err := Read(name)
		require.ErrorContains(t, err, strings.TrimSpace(want), what)
		require.ErrorContains(t, err, "rules.toml")
	})
	_, err := Read(t.TempDir())
	require.ErrorContains(t, err, "not a file")
	_, err = Read("/nonexistent")
	require.ErrorIs(t, err, os.ErrNotExist)
}

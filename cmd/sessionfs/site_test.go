//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSiteIsClosed: a site's own file cannot lead out of its directory, and a damaged one is refused with all that it lists.
func TestSiteIsClosed(t *testing.T) {
	s := commandStore(t)
	dir := t.TempDir()
	beside := filepath.Join(filepath.Dir(dir), "mine-0123456789abcdef.html")
	require.NoError(t, os.WriteFile(beside, nil, 0o600))
	s.here("export", "--all", dir).ok(t)
	file := filepath.Join(dir, siteFile)
	was := string(readFile(t, file))
	for _, text := range []string{
		strings.Replace(was, `"pages": {`, `"pages": {"../mine-0123456789abcdef.html": {"state": ""},`, 1),
		strings.Replace(was, `"pages": {`, `"pages": {"index.html": {"state": ""},`, 1),
		strings.Replace(was, `"pages": {`, `"pages": {"x-0123456789abcdef.html": null,`, 1),
		strings.Replace(was, `"format": 1`, `"format": 2`, 1), was[:len(was)/2], "{}", "",
	} {
		require.NotEqual(t, was, text)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		requireStatus(t, exitUsage, s.here("export", "--all", dir), "cannot be used")
		require.Equal(t, text, string(readFile(t, file)))
	}
	require.FileExists(t, beside)
	require.NoError(t, os.WriteFile(file, []byte(was), 0o600))
	require.Contains(t, s.here("export", "--all", dir).ok(t).stdout, "0 pages written, 5 as they were")
	requireStatus(t, exitUsage, s.here("export", "--all", file), "choose another directory")
}

//go:build linux

package main

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExport(t *testing.T) {
	s := commandStore(t)
	r := s.here("export", "019d3d9")
	require.Zero(t, r.code, r.stderr)
	require.Contains(t, r.stdout, "<title>An hour late, a hand too high</title>")
	require.Contains(t, r.stdout, "CI has been red since Sunday morning")
	require.NotContains(t, r.stdout, "<script")
	for _, name := range []string{"by-id/019d3d9", "recent/04-*", "by-id/019d3d9/branches/current"} {
		require.Equal(t, r, s.here("export", name), name)
	}
	require.Contains(t, s.here("export", "by-id/019d3d9/branches/6ab2fbe0").stdout, "could a sheet come out as a calendar")

	blobs, err := filepath.Glob(filepath.Join(s.source, "blobs", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, blobs)
	image, err := os.ReadFile(blobs[0])
	require.NoError(t, err)
	data := base64.StdEncoding.EncodeToString(image)
	all := ""
	for _, id := range strings.Fields(s.here("ls", "by-id").stdout) {
		all += s.here("export", id).stdout
	}
	require.Contains(t, all, `base64,`+data+`"`, "an image is in the page")

	requireStatus(t, exitFailure, s.here("export", "none"), "none is not a session")
	requireStatus(t, exitUsage, s.here("export", "by-id/*"), "5 paths")
	requireStatus(t, exitUsage, s.here("export"))
}

// A page for others has no known key in it and no image.
func TestExportRedacted(t *testing.T) {
	s := commandStore(t)
	key := "AKIA" + "Z7QF3XW2MN5RT4YK"
	message := `{"type":"message","message":{"role":"user","content":"the key is ` + key + ` <script>alert(1)</script>"}}` + "\n"
	require.Zero(t, s.fed(message, "write", "by-id/019d3d9/append").code)
	r := s.here("export", "019d3d9")
	require.Contains(t, r.stdout, key)
	require.Contains(t, r.stdout, "&lt;script&gt;alert(1)&lt;/script&gt;")
	r = s.here("export", "-o", "redact", "019d3d9")
	require.Zero(t, r.code, r.stderr)
	require.NotContains(t, r.stdout, key)
	require.Contains(t, r.stdout, "the key is ")
	require.NotContains(t, r.stdout, "base64,")
}

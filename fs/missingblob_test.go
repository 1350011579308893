package fs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMissingBlob: an image whose blob is gone is in problems.jsonl, and its reference in context.json, from the next look on,
// and not when the blob is back. Both sizes are exact each time, and a stat of context.json renders it once.
func TestMissingBlob(t *testing.T) {
	a := newAgent(t)
	hash := sum256("an image")
	lines := []string{header("s")}
	for n := range 100 {
		lines = append(lines, strings.Replace(entry(n, entryID(n), before(n, n-1), "IMAGE"), `"IMAGE"`,
			`[{"type":"image","mimeType":"image/png","data":"blob:sha256:`+hash+`"}]`, 1))
	}
	a.write("s", lines...)
	blobs := filepath.Join(a.dir, "blobs")
	m := mountForTest(t, a.dir)
	context := m.session("s", "context.json")
	look := func(there bool) {
		t.Helper()
		for _, file := range []string{context, m.session("s", "problems.jsonl")} {
			text := string(read(t, file))
			require.Equal(t, fmt.Sprintln(len(text)), run(t, "stat", "-c", "%s", file))
			require.Equal(t, !there, strings.Contains(text, hash), "%s: %.300s", file, text)
		}
		require.Equal(t, !there, strings.Contains(run(t, "cat", m.session("s", "problems.jsonl")), `"problem":"blob"`))
	}
	for range 3 {
		look(false)
		writeFile(t, filepath.Join(blobs, hash), "an image")
		look(true)
		require.NoError(t, os.Rename(blobs, blobs+".gone"))
		look(false)
		require.NoError(t, os.Rename(blobs+".gone", blobs))
		look(true)
		require.NoError(t, os.Remove(filepath.Join(blobs, hash)))
	}
	require.NoError(t, os.WriteFile(filepath.Join(blobs, hash), []byte("an image"), 0o644))
	require.NoError(t, os.Chtimes(blobs, time.Time{}, time.Now().Add(-time.Hour)))
	time.Sleep(100 * time.Millisecond) // the directory is as it was for a while: its times tell of the next change
	look(true)
	reads := m.procNumber("io", "syscr")
	run(t, "stat", context, context, context, context, context, context, context, context, context, context)
	require.Less(t, m.procNumber("io", "syscr")-reads, 300, "reads for ten stats: those of requests, and not one for each of 100 messages")
}

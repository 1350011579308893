package fs_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEntriesAreReadWhole: entries of all sizes around those of pipes, at all offsets in a page, are read
// to their last byte at the first try. (Spliced from the session file, some came back short.)
func TestEntriesAreReadWhole(t *testing.T) {
	t.Parallel()
	source := t.TempDir()
	dir := filepath.Join(source, "sessions", "p")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	var file bytes.Buffer
	file.WriteString(`{"type":"session","version":3,"id":"s","timestamp":"2026-01-05T09:00:00.000Z","cwd":"/w"}` + "\n")
	want := map[string]string{}
	for i, around := range []int{4096, 57_000, 59_000, 61_000, 61_400, 122_500, 124_000, 126_000, 254_000, 257_000} {
		for k := 0; k < 30; k += sized(1, 4) {
			id := fmt.Sprintf("e%d-%d", i, k)
			line := fmt.Sprintf(`{"type":"x","id":"%s","text":"%s"}`+"\n", id, strings.Repeat("x", around+k*137))
			want[id+".json"] = line
			file.WriteString(line)
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "s.jsonl"), file.Bytes(), 0o600))
	m := mountForTest(t, source)
	entries := filepath.Join(m.dir, "sessions", "p", "s", "entries")
	for name, text := range want {
		got, err := os.ReadFile(filepath.Join(entries, name))
		require.NoError(t, err)
		require.True(t, string(got) == text, "%s: %d bytes of %d", name, len(got), len(text))
	}
	raw, err := os.ReadFile(filepath.Join(m.dir, "sessions", "p", "s.jsonl"))
	require.NoError(t, err)
	require.True(t, bytes.Equal(raw, file.Bytes()))
}

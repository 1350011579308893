package fs_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The first write to an old session, and the one after a torn line (docs/design.md sections 3 and 4).

// v1 is a session of version 1: no ids, a compaction that counts, a line that cannot be read, and a torn
// one at the end.
const v1 = `{"type":"session","id":"old","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/home/dev/project","provider":"x"}
{"type":"message","timestamp":"2025-01-01T00:00:01.000Z","message":{"role":"user","content":"one","timestamp":1}}
this line cannot be read
{"type":"message","timestamp":"2025-01-01T00:00:02.000Z","message":{"role":"user","content":"two","n":1.50e3,"timestamp":1}}
{"type":"compaction","timestamp":"2025-01-01T00:00:03.000Z","summary":"s","firstKeptEntryIndex":2,"tokensBefore":7}
{"type":"message","timestamp":"2025-01-01T00:00:04.000Z","message":{"role":"user","content":"three","timestamp":1}}
{"type":"message","timestamp":"2025-01-01T00:0`

// TestFirstWriteMigrates: reading changes nothing; the first write persists the migration with the ids that were shown, which
// follow from the file alone, and loses nothing. Package writer does it with each kind of write.
func TestFirstWriteMigrates(t *testing.T) {
	w := newWriting(t)
	w.write("s", v1)
	require.NoError(t, os.Chmod(w.path("s.jsonl"), 0o600))
	shown := names(t, w.in("entries"))
	require.Equal(t, []string{"b1ea3579.json", "c9c82235.json", "fb54c441.json", "98ee97b1.json"}, shown)
	texts := shell(t, `cd "$1/entries"; ls -U | xargs cat`, w.in())
	w.unchanged(v1, "reading")
	run(t, "ln", "-sfn", "entries/"+shown[1], w.in("leaf"))
	require.Equal(t, shown, names(t, w.in("entries"))[:4], "the ids that were shown")
	raw := w.raw("s")
	require.Equal(t, texts, shell(t, `cd "$1/entries"; ls -U | head -n 4 | xargs cat`, w.in()))
	for _, text := range append(strings.SplitAfter(strings.TrimSuffix(texts, "\n"), "\n"), "this line cannot be read\n", `{"type":"message","timestamp":"2025-01-01T00:0`) {
		require.Contains(t, raw, "\n"+text, "as it was shown, and what cannot be read too")
	}
	require.Contains(t, raw, `"n":1.50e3`)
	require.Equal(t, "3 x\n", shell(t, `head -n 1 "$1" | jq -r '"\(.version) \(.provider)"'`, w.path("s.jsonl")))
	require.NotEmpty(t, w.read("problems.jsonl"))
	require.Equal(t, "600 s.jsonl\n", shell(t, `cd "$1"; echo $(stat -c %a s.jsonl) $(ls -A)`, w.path("")))
	w.remount()
	require.Equal(t, shown, names(t, w.in("entries"))[:4])
	require.NoError(t, put(w.in("append"), message("on")))
	require.True(t, strings.HasPrefix(w.raw("s"), raw), "migrated once")
	require.Equal(t, "on\n", run(t, "jq", "-r", ".message.content", w.in("leaf")))
}

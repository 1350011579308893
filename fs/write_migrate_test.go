package fs_test

import (
	"encoding/json"
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

// TestFirstWriteMigrates: reading changes nothing; the first write of any kind persists the migration with
// the ids that were shown, and loses nothing.
func TestFirstWriteMigrates(t *testing.T) {
	for name, script := range map[string]string{
		"append": `echo '{"type":"custom","customType":"x"}' > "$1/append"`,
		"leaf":   `ln -sfn "entries/$(ls -U "$1/entries" | sed -n 2p)" "$1/leaf"`,
		"labels": `echo "$(ls -U "$1/entries" | sed -n '2s/.json//p') label" > "$1/labels"`,
		"title":  `echo title > "$1/title"`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWriting(t)
			w.write("s", v1)
			require.NoError(t, os.Chmod(w.path("s.jsonl"), 0o600))
			shown := names(t, w.in("entries"))
			require.Len(t, shown, 4)
			content := map[string]string{}
			for _, name := range shown {
				content[name] = w.read("entries", name)
			}
			w.unchanged(v1, "reading")
			shell(t, script, w.in())
			require.Equal(t, shown, names(t, w.in("entries"))[:4], "the ids that were shown")
			for name, text := range content {
				require.Equal(t, text, w.read("entries", name))
			}
			raw := w.raw("s")
			require.Contains(t, raw, "\nthis line cannot be read\n")
			require.Contains(t, raw, "\n"+`{"type":"message","timestamp":"2025-01-01T00:0`, "the torn line too")
			require.Contains(t, raw, `"n":1.50e3`)
			head, _, _ := strings.Cut(raw, "\n")
			var h map[string]any
			require.NoError(t, json.Unmarshal([]byte(head), &h))
			require.EqualValues(t, 3, h["version"])
			require.Equal(t, "x", h["provider"])
			for _, name := range shown {
				require.Contains(t, raw, "\n"+content[name], "as it was shown")
			}
			require.NotEmpty(t, w.read("problems.jsonl"))
			info, err := os.Stat(w.path("s.jsonl"))
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
			require.Equal(t, "s.jsonl\n", run(t, "ls", "-A", w.path("")))
			w.remount()
			require.Equal(t, shown, names(t, w.in("entries"))[:4])
			require.NoError(t, put(w.in("append"), message("on")))
			require.True(t, strings.HasPrefix(w.raw("s"), raw), "migrated once")
			require.Equal(t, "on\n", run(t, "jq", "-r", ".message.content", w.in("leaf")))
		})
	}
}

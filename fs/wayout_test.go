package fs_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// waysOut are slips of a person at a shell in a session's directory, the error that the shell shows, and what last-error
// says to do. A way that begins with / is told in the root.
var waysOut = []struct{ script, shown, way string }{
	{`printf '%s\n' 'no JSON' > append`, "Invalid argument", "expected one JSON object"},
	{`echo '{"type":"bogus"}' > append`, "Invalid argument", `type: expected one that can be appended, found "bogus"`},
	{`echo '{"type":"message","message":{}}' > append`, "Invalid argument", "message.role: expected"},
	{`printf '{"type":"custom",' > append; cat last-error >&2; false`, "Z append", "no newline and is not a whole JSON object"},
	{`echo '{"type":"custom","customType":"x","id":"e1"}' > append`, "File exists", "leave id out, and a new one is made"},
	{`echo '{"type":"custom","customType":"x","parentId":"zz"}' > append`, "No such file", "entries/ has the ids"},
	{`ln -sfn entries/zz.json leaf`, "No such file", "entries/ has the ids"},
	{`ln -sfn ../../elsewhere leaf`, "Invalid argument", "<id>, entries/<id>.json"},
	{`echo 'zz a label' > labels`, "No such file", "entries/ has the ids"},
	{`echo zz > fork`, "No such file", "entries/ has the ids"},
	{`printf 'one\ntwo\n' | cat > title`, "Invalid argument", "one line"},
	{`echo relative > ../../../new-session`, "Invalid argument", "/expected an absolute path"},
	{`echo x > transcript.md`, "Operation not permitted", "write to append, labels, title or fork"},
	{`echo x > entries/e1.json`, "Operation not permitted", "write to append, labels, title or fork"},
	{`rm transcript.md`, "Operation not permitted", "write to append, labels, title or fork"},
	{`rm -r tree`, "Operation not permitted", "write to append, labels, title or fork"},
	{`mkdir notes`, "Operation not permitted", "write to append, labels, title or fork"},
	{`mv title name`, "Operation not permitted", "write to append, labels, title or fork"},
	{`mkdir ../../../notes`, "Operation not permitted", "/changed in SOURCE"},
	{`rm ../../../index.jsonl`, "Operation not permitted", "/changed in SOURCE"},
	{`ls ../../../by-id/zz`, "No such file", "/no session's id or file name begins with it"},
	{`ls ../../../by-id/zz`, "No such file", "/ls shows what is there"},
	{`ls '../../../search/"x'`, "Invalid argument", "/does not end with one"},
	{`ls ../../../search/after:tomorrow`, "Invalid argument", "/such as 2026-01-31"},
}

// TestRefusalsNameTheWayOut: a slip changes nothing, and last-error says what to do instead.
func TestRefusalsNameTheWayOut(t *testing.T) {
	t.Parallel()
	w := newWriting(t)
	before := w.raw("s")
	for _, c := range waysOut {
		_, said, err := tool(t, "bash", "-c", `cd "$1" && `+c.script, "bash", w.in())
		require.Error(t, err, c.script)
		if os.Geteuid() != 0 && strings.HasPrefix(c.script, "echo x > ") {
			require.Contains(t, said, "Permission denied", "%s: the kernel refuses it by the mode", c.script)
			continue
		}
		require.Contains(t, said, c.shown, c.script)
		told, way := w.read("last-error"), c.way
		if strings.HasPrefix(way, "/") {
			text := read(t, w.m.path("last-error"))
			told, way = string(text), way[1:]
		}
		require.Contains(t, told, way, c.script)
		require.Equal(t, before, w.raw("s"), c.script)
	}
}

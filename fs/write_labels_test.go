package fs_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// Writing to labels (docs/design.md section 2).

func TestLabels(t *testing.T) {
	w := newWriting(t)
	labels := w.in("labels")
	require.Empty(t, w.read("labels"))
	for _, c := range []struct {
		script, want string
		added        int
		err          string
	}{
		{`echo "e1 two words" > "$1"`, "e1\ttwo words\n", 1, ""},
		{`printf 'e2\twith tab' >> "$1"`, "e1\ttwo words\ne2\twith tab\n", 1, ""},
		{`printf 'e1\t two words \n' | tee "$1"`, "e2\twith tab\ne1\t two words \n", 1, ""},
		{`cat "$1" > "$2/copy"; cat "$2/copy" > "$1"`, "e2\twith tab\ne1\t two words \n", 0, ""},
		{`sed 's/with tab/changed/' "$1" > "$2/copy" && cp "$2/copy" "$1"`, "e1\t two words \ne2\tchanged\n", 1, ""},
		{`printf 'e0 first\nnobody x\ne3 never\n' | cat > "$1"`, "e1\t two words \ne2\tchanged\ne0\tfirst\n", 1, "No such file"},
		{`echo e2 > "$1"`, "e1\t two words \ne0\tfirst\n", 1, ""},
		{`sed '/^e1/d' "$1" > "$2/copy"; cat "$2/copy" >> "$1"`, "e1\t two words \ne0\tfirst\n", 0, ""},
		{`sed '/^e1/d' "$1" > "$2/copy"; cat "$2/copy" > "$1"`, "e0\tfirst\n", 1, ""},
		{`printf 'e1 x\ne2\ty' > "$1"`, "e0\tfirst\ne1\tx\ne2\ty\n", 2, ""},
		{`printf 'e1\tz\ne0\tfirst' > "$1"`, "e0\tfirst\ne1\tz\n", 2, ""},
		{`exec 3<>"$1"; printf 'e0\tfirst\n' >&3; exec 3>&-`, "e0\tfirst\ne1\tz\n", 0, ""},
		{`printf 'e0\tfirst\nnobody x\n' | cat > "$1"`, "e0\tfirst\ne1\tz\n", 0, "No such file"},
		{`printf 'e1\t\ne0 \n' > "$1"`, "", 2, ""},
		{`printf '\n\n' > "$1"; : > "$1"; touch "$1"; truncate -s 0 "$1"`, "", 0, ""},
		{`printf 'e1 bad\\q\n' > "$1"`, "", 0, "Invalid argument"},
		{`printf '%s\n' 'e1 a\tb\\c\nd\re\ud800' > "$1"`, "e1\t" + `a\tb\\c\nd\re\ud800` + "\n", 1, ""},
		{`sed 's/a\\t/A\\t/' "$1" > "$2/copy"; cat "$2/copy" > "$1"`, "e1\t" + `A\tb\\c\nd\re\ud800` + "\n", 1, ""},
	} {
		before := w.raw("s")
		_, problems, err := tool(t, "bash", "-c", "set -e; "+c.script, "bash", labels, t.TempDir())
		if c.err == "" {
			require.NoError(t, err, "%s: %s", c.script, problems)
		} else {
			require.Error(t, err, c.script)
			require.Contains(t, problems, c.err, c.script)
			require.Contains(t, w.read("last-error"), "labels: ", c.script)
		}
		require.Equal(t, c.want, w.read("labels"), c.script)
		require.Equal(t, fmt.Sprintln(len(c.want)), run(t, "stat", "-c", "%s", labels), c.script)
		added := w.added(before)
		require.Len(t, added, c.added, c.script)
		for _, r := range added {
			require.Equal(t, "label", r.Type)
			require.Equal(t, "entries/"+added[len(added)-1].ID+".json", w.leaf(), "a label entry becomes the leaf")
		}
	}
	w.wellRead()
}

// TestTerminalsAreNotObeyed: control characters of a session are escaped where a terminal would show them; what was
// read of labels can be written back, and changes nothing.
func TestTerminalsAreNotObeyed(t *testing.T) {
	const escapes = `\u001b[2J \u001b]0;owned\u0007 \u009b31m \u0085 \u007f \u0000 \r \n \u202e \u2066 \u200f \u061c`
	for name, c := range map[string]struct{ id, label, said string }{
		"a label":           {"e9", escapes, "said"},
		"an id":             {"e9" + escapes, "L", "said"},
		"what a user said":  {"e9", "L", escapes + "said"},
		"all":               {"e9" + escapes, escapes, escapes + "said"},
		"an escape of ours": {"e9", `\\u001b \\\\n`, "said"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWriting(t)
			w.add("s", entry(4, c.id, "e0", c.said),
				`{"type":"label","id":"l0","parentId":"`+c.id+`","timestamp":"2026-02-16T11:00:05.000Z","targetId":"`+c.id+`","label":"`+c.label+`"}`+"\n",
				entry(6, "last", "l0", c.said))
			found := run(t, "cat", w.m.path("search/said/results.tsv"))
			require.Contains(t, found, "said")
			for file, text := range map[string]string{
				"labels": w.read("labels"), "branches.tsv": w.read("branches.tsv"), "title": w.read("title"),
				"results.tsv": found, "entries": strings.Join(names(t, w.in("entries")), ""),
				"by-label": strings.Join(names(t, w.in("by-label")), ""),
			} {
				require.False(t, strings.ContainsFunc(text, func(r rune) bool {
					return unicode.IsControl(r) && r != '\n' && r != '\t' || strings.ContainsRune(bidiControls, r)
				}), "%s: %q", file, text)
			}
			require.Equal(t, 1, strings.Count(w.read("labels"), "\n"), "a line for the label")
			require.Equal(t, 1+3, strings.Count(w.read("branches.tsv"), "\n"), "a line for each tip")
			before := w.raw("s")
			shell(t, `cat "$1" > "$2"; cat "$2" > "$1"`, w.in("labels"), tempFile(t, ""))
			w.unchanged(before, "written back")
		})
	}
}

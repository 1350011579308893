package fs_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	filenames "sessionfs/sessioncore/names"
)

// separators begin another line in some programs, and bidiControls change the direction of writing.
const separators, bidiControls = "\u2028\u2029", "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"

// nameOf is the rule of docs/design.md section 1, Names, written from its text: plain names as they are, else
// offending bytes in percent-encoding, cut at 200 bytes with 16 digits of the id's hash.
func nameOf(id string) string {
	var name strings.Builder
	for at, rest := 0, id; rest != ""; rest = id[at:] {
		r, n := utf8.DecodeRuneInString(rest)
		control := r <= 0x1F || r >= 0x7F && r <= 0x9F || strings.ContainsRune(separators+bidiControls, r)
		notUTF8 := r == utf8.RuneError && n == 1 // of a lone surrogate
		leading := at == 0 && (r == '.' || r == '-')
		if control || notUTF8 || leading || r == '/' || r == '%' || r == '~' {
			for i := range n {
				fmt.Fprintf(&name, "%%%02X", rest[i])
			}
		} else {
			name.WriteString(rest[:n])
		}
		at += n
	}
	out := name.String()
	switch {
	case out == "":
		return "%"
	case len(out) > 200:
		hash := fmt.Sprintf("%x", sha256.Sum256([]byte(id)))
		return out[:200] + "~" + hash[:16]
	}
	return out
}

// treeNameOf is nameOf in tree/, where entry.json is a fixed name.
func treeNameOf(id string) string {
	if id == "entry.json" {
		return "%65ntry.json"
	}
	return nameOf(id)
}

// pieces are what random ids are put together of.
var pieces = []string{
	"a", "B", "0", "é", "🌱", " ", "/", "..", ".", "-", "%", "%2F", "~", "~1", "\x00", "\n", "\r", "\t", "\x1b", "\x7f",
	"\u0085", "\u009f", "\u00a0", "\u2028", "\u061c", "\u200d", "\u202e", "\u2069", "\uFFFD", "\xED\xA0\xBC", "\xED\xBF\xBF", "entry.json", ".deep",
	"leaf", "current",
	"CON", "\\", "*", `"`, "<", strings.Repeat("x", 60), strings.Repeat("é", 40), strings.Repeat("/", 30),
}

// randomIDs draws ids, some of them twice.
func randomIDs(seed uint64, n int) (ids []string) {
	rnd := rand.New(rand.NewPCG(seed, 9))
	for range n {
		id := ""
		for range rnd.IntN(6) {
			id += pieces[rnd.IntN(len(pieces))]
		}
		ids = append(ids, strings.ReplaceAll(id, "\xED\xA0\xBC\xED\xBF\xBF", "🏿")) // the halves of a pair are one code point
	}
	return ids
}

// quoted is an id as JSON, with the halves of surrogate pairs in pieces.
func quoted(id string) string {
	text, _ := json.Marshal(strings.NewReplacer("\xED\xA0\xBC", "\uE000", "\xED\xBF\xBF", "\uE001").Replace(id))
	return strings.NewReplacer("\uE000", `\ud83c`, "\uE001", `\udfff`).Replace(string(text))
}

// oddIDs are ids that could lead somewhere, or that names cannot have.
var oddIDs = []string{
	"a/b", "..", ".", "../../../etc/passwd", "a\x00b", "a\nb", strings.Repeat("h", 300), "100%", "%2E%2E", "~", "a~2", ".hidden", "-rf", "a\u0080b\u009f",
	"\xED\xA0\xBC", "", "entry.json", ".deep", " ", `"\`, "\x1b[2J", strings.Repeat("é", 150), strings.Repeat("q", 1<<20), strings.Repeat("q", 1<<20) + "r",
}

// TestNames: names are made as the design says, and no two ids share one. In the mount every id is found under its name in
// entries/ and in tree/, and under no other.
func TestNames(t *testing.T) {
	onceIsEnough(t)
	seen := map[string]string{}
	for _, id := range append(randomIDs(1, sized(20_000, 4_000)), oddIDs...) {
		name := filenames.FileName(id)
		require.Equal(t, nameOf(id), name, "%.300q", id)
		require.LessOrEqual(t, len(name), 217)
		other, taken := seen[name]
		require.False(t, taken && other != id, "%.300q and %.300q are both called %s", id, other, name)
		seen[name] = id
	}

	ids := slices.Compact(slices.Sorted(slices.Values(append(randomIDs(2, 400), oddIDs...))))
	a := newAgent(t)
	lines := []string{header("names")}
	for n, id := range ids {
		lines = append(lines, strings.Replace(entry(n, "ID", "", "x"), `"ID"`, quoted(id), 1))
	}
	for n, id := range oddIDs {
		lines = append(lines, strings.Replace(entry(1, fmt.Sprint("child of ", n), "ID", "x"), `"ID"`, quoted(id), 1))
	}
	a.write("names", lines...)
	m := mountForTest(t, a.dir)
	entries := names(t, m.session("names", "entries"))
	tree := names(t, m.session("names", "tree"))
	require.Equal(t, ".deep", tree[0])
	for n, id := range ids {
		require.Equal(t, nameOf(id)+".json", entries[n], "%.300q", id)
		require.Equal(t, treeNameOf(id), tree[n+1], "%.300q", id)
		for _, way := range []string{"entries/" + entries[n], "tree/" + tree[n+1] + "/entry.json"} {
			require.True(t, lines[n+1] == string(read(t, m.session("names", way))), "%s of %.300q", way, id)
		}
	}
	for n, id := range oddIDs {
		if id != "" { // an empty parentId means none
			require.Equal(t, []string{"entry.json", fmt.Sprint("child of ", n)}, names(t, m.session("names", "tree", treeNameOf(id))))
		}
	}
	require.Empty(t, run(t, "find", m.session("names"), "-name", "passwd"))
	run(t, "tar", "-C", m.path("sessions/p"), "-cf", "/dev/null", "names")
	for _, other := range []string{"%61", "%2f", "x~1", "~1", "~2", "a%", "%ZZ", strings.Repeat("x", 201), nameOf(strings.Repeat("x", 300))} {
		for _, way := range []string{"entries/" + other + ".json", "tree/" + other} {
			_, err := os.Lstat(m.session("names", way))
			require.ErrorIs(t, err, os.ErrNotExist, "%q", way)
		}
	}
	_, err := os.Lstat(m.session("names", "entries", strings.Repeat("n", 256)))
	require.Error(t, err)
}

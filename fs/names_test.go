package fs_test

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	filenames "sessionfs/sessioncore/names"
)

// nameOf is the rule of docs/design.md section 1, Names, written from its text: plain names as they are, else
// offending bytes in percent-encoding, cut at 200 bytes with 16 digits of the id's hash.
func nameOf(id string) string {
	var name strings.Builder
	for at, rest := 0, id; rest != ""; rest = id[at:] {
		r, n := utf8.DecodeRuneInString(rest)
		control := r <= 0x1F || r >= 0x7F && r <= 0x9F
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
	switch out := name.String(); {
	case out == "":
		return "%"
	case len(out) > 200:
		return fmt.Sprintf("%s~%x", out[:200], sha256.Sum256([]byte(id)))[:200+1+16]
	default:
		return out
	}
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
	"\u0085", "\u009f", "\u00a0", "\u2028", "\uFFFD", "\xED\xA0\xBC", "\xED\xBF\xBF", "entry.json", ".deep", "leaf", "current",
	"CON", "\\", "*", `"`, "<", strings.Repeat("x", 60), strings.Repeat("é", 40), strings.Repeat("/", 30),
}

func randomIDs(seed uint64, n int) []string {
	rnd := rand.New(rand.NewPCG(seed, 9))
	seen := map[string]bool{}
	for len(seen) < n {
		id := ""
		for range rnd.IntN(6) {
			id += pieces[rnd.IntN(len(pieces))]
		}
		seen[withPairs(id)] = true
	}
	ids := make([]string, 0, n)
	for id := range seen {
		ids = append(ids, id)
	}
	return ids
}

// withPairs joins the halves of surrogate pairs that came together: such text is one code point.
func withPairs(id string) string { return strings.ReplaceAll(id, "\xED\xA0\xBC\xED\xBF\xBF", "🏿") }

// TestNames: names are made as the design says, and no two ids share one.
func TestNames(t *testing.T) {
	onceIsEnough(t)
	seen := map[string]string{}
	for _, id := range append(randomIDs(1, sized(20_000, 4_000)), strings.Repeat("q", sized(10<<20, 1<<20)), strings.Repeat("q", sized(10<<20, 1<<20))+"r") {
		name := filenames.FileName(id)
		require.Equal(t, nameOf(id), name, "%.300q", id)
		require.LessOrEqual(t, len(name), 217)
		other, taken := seen[name]
		require.False(t, taken, "%.300q and %.300q are both called %s", id, other, name)
		seen[name] = id
	}
}

// TestNamesInMount: every id is found under its name in entries/ and in tree/, and under no other.
func TestNamesInMount(t *testing.T) {
	ids := randomIDs(2, 400)
	a := newAgent(t)
	lines := []string{header("names")}
	for n, id := range ids {
		lines = append(lines, strings.Replace(entry(n, "ID", "", "x"), `"ID"`, quoted(id), 1))
	}
	a.write("names", lines...)
	m := mountForTest(t, a.dir)
	entries, tree := names(t, m.session("names", "entries")), names(t, m.session("names", "tree"))
	require.Equal(t, ".deep", tree[0])
	for n, id := range ids {
		require.Equal(t, nameOf(id)+".json", entries[n], "%q", id)
		require.Equal(t, treeNameOf(id), tree[n+1], "%q", id)
		text, err := os.ReadFile(m.session("names", "tree", tree[n+1], "entry.json"))
		require.NoError(t, err, "%q", id)
		require.Contains(t, string(text), `"id":`+quoted(id)+",")
	}
	for _, other := range []string{"%61", "%2f", "%", "x~1", "~", "~1", "~2", "%2E.", "a%", "%ZZ", strings.Repeat("x", 201), nameOf(strings.Repeat("x", 300))} {
		if !contains(entries, other+".json") {
			_, err := os.Lstat(m.session("names", "entries", other+".json"))
			require.ErrorIs(t, err, os.ErrNotExist, "%q", other)
		}
		if !contains(tree, other) {
			_, err := os.Lstat(m.session("names", "tree", other))
			require.ErrorIs(t, err, os.ErrNotExist, "%q", other)
		}
	}
	_, err := os.Lstat(filepath.Join(m.session("names", "entries"), strings.Repeat("n", 256)))
	require.Error(t, err)
}

func contains(list []string, name string) bool {
	return strings.Contains("\x00"+strings.Join(list, "\x00")+"\x00", "\x00"+name+"\x00")
}

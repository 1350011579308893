package layout

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

const header = `{"type":"session","version":3,"id":"s","timestamp":"2026-02-16T10:20:30.000Z","cwd":"/"}` + "\n"

// entry is an entry under a parent, "" for none.
func entry(id, parent string) string {
	return fmt.Sprintf(`{"type":"custom","id":%q,"parentId":%q,"timestamp":"2026-02-16T10:20:31.000Z"}`+"\n", id, parent)
}

// acquire returns a snapshot of a session with that content.
func acquire(t testing.TB, content string) (*sessioncore.Snapshot, error) {
	t.Helper()
	files := memory.New()
	require.NoError(t, files.WriteFile("s.jsonl", []byte(content)))
	store := sessioncore.NewStore(files)
	t.Cleanup(store.Close)
	snap, err := store.Session("s.jsonl").Acquire(context.Background())
	if err == nil {
		t.Cleanup(snap.Release)
	}
	return snap, err
}

func snapshotOf(t testing.TB, content string) *sessioncore.Snapshot {
	t.Helper()
	snap, err := acquire(t, content)
	require.NoError(t, err)
	return snap
}

func TestNesting(t *testing.T) {
	for _, c := range []struct {
		name   string // of each level
		levels int
	}{
		{"a", 64}, {strings.Repeat("b", 8), 64}, {strings.Repeat("c", 100), 19}, {strings.Repeat("d", 217), 9}, {strings.Repeat("e", 2000), 1},
	} {
		levels := 0
		for at, ok := (Nesting{}).Below(c.name); ok; at, ok = at.Below(c.name) {
			levels++
			require.Equal(t, levels, at.Levels)
			require.Equal(t, len(strings.Repeat(c.name+"/", levels)), at.Bytes)
		}
		require.Equal(t, c.levels, levels, "levels of %d bytes each", len(c.name))
	}
}

func TestTreeNames(t *testing.T) {
	s := snapshotOf(t, header+entry("a", "")+entry("x/y", "a")+entry("entry.json", "a")+entry(".deep", "a")+entry("a", ""))
	for _, c := range []struct {
		entry sessioncore.Entry
		name  string
	}{{1, "x%2Fy"}, {2, "%65ntry.json"}, {3, "%2Edeep"}, {4, "a"}} {
		require.Equal(t, c.name, TreeName(s, c.entry))
		e, err := FindTreeName(s, c.name)
		require.NoError(t, err)
		require.Equal(t, c.entry, e, c.name)
	}
	for _, name := range []string{"", "b", "entry.json", ".deep", "a~2", "%61"} {
		_, err := FindTreeName(s, name)
		require.ErrorIs(t, err, sessioncore.ErrNotFound, name)
	}
}

// TestBeginnings: a chain goes on in .deep after each 64 levels, a branch of it at the same depth too.
func TestBeginnings(t *testing.T) {
	text := header
	for i := range 130 {
		text += entry(fmt.Sprint(i), fmt.Sprint(i-1))
	}
	text += entry("side", "63") + entry("short", "62")
	require.ElementsMatch(t, []sessioncore.Entry{64, 128, 130}, Beginnings(snapshotOf(t, text)))
	require.Empty(t, Beginnings(snapshotOf(t, header+entry("a", "")+entry("b", "a"))))
}

func TestPathNames(t *testing.T) {
	long := strings.Repeat("i", 300)
	s := snapshotOf(t, header+`{"id":"a","type":"message","message":{"role":"user"}}`+"\n"+
		`{"id":"x/y","parentId":"a","type":"message","message":{"role":"toolResult","toolName":"bash"}}`+"\n"+
		`{"id":"`+long+`","parentId":"x/y","type":"`+strings.Repeat("%", 20)+`"}`+"\n")
	branch := s.Branch(2)
	for place, want := range []string{
		"000001-user-a.json",
		"000002-toolResult-bash-x%2Fy.json",
		"000003-" + strings.Repeat("%25", 8) + "-" + names.FileName(long) + ".json",
	} {
		e := sessioncore.Entry(place)
		require.Equal(t, want, PathName(s, place, e))
		require.LessOrEqual(t, len(want), 255)
		found, err := FindPathName(s, branch, want)
		require.NoError(t, err)
		require.Equal(t, e, found)
	}
	for _, name := range []string{"", "a", "1-user-a.json", "000000-user-a.json", "000001-user-a", "000001-assistant-a.json", "000002-user-a.json",
		"000004-user-a.json", "-1-user-a.json", "+00001-user-a.json", "0000001-user-a.json", "99999999999999999999-user-a.json"} {
		_, err := FindPathName(s, branch, name)
		require.ErrorIs(t, err, sessioncore.ErrNotFound, name)
	}
}

func TestCutPathLabel(t *testing.T) {
	for _, c := range []struct {
		what  string
		limit int
		want  string
	}{
		{"user", 40, "user"}, {"user", 4, "user"}, {"user", 3, "use"}, {"a%2Fb", 5, "a%2Fb"}, {"a%2Fb", 4, "a%2F"}, {"a%2Fb", 3, "a"},
		{"aéb", 3, "aé"}, {"aéb", 2, "a"}, {"%", 1, "%"}, {"%2F", 2, ""},
	} {
		require.Equal(t, c.want, cutPathLabel(c.what, c.limit), "%s at %d", c.what, c.limit)
	}
}

// FuzzLayout: whatever is in a file, each entry of its tree has one directory in tree/, each entry of a branch one name
// in path/, and all are names that a directory can hold.
func FuzzLayout(f *testing.F) {
	chain := header
	for i := range 200 {
		chain += entry(fmt.Sprint(i), fmt.Sprint(i-1))
	}
	long := strings.Repeat("é", 150)
	for _, text := range []string{
		chain,
		header + entry("a", "") + entry("b", "a") + entry("b", "c") + entry("c", "b") + "torn",
		header + entry("entry.json", "") + entry(".deep", "entry.json") + entry("%65ntry.json", ".deep"),
		header + entry(long, "") + entry(long+"x", long) + `{"type":"` + long + `","id":"t","parentId":"` + long + `"}` + "\n",
		header + `{"type":"message","message":{"role":"tool_result","tool_name":"a/b%"}}` + "\n" + `{"id":"\ud800","type":"x"}` + "\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := acquire(t, string(data))
		if err != nil {
			require.ErrorIs(t, err, sessioncore.ErrNotSession)
			return
		}
		tree, dirs := s.Tree(), map[string]bool{}
		for e := range sessioncore.Entry(s.Len()) {
			if tree.Has(e) {
				name := TreeName(s, e)
				require.False(t, dirs[name], "two directories are called %q", name)
				dirs[name] = true
				checkName(t, name)
				require.NotEqual(t, EntryLink, name)
				found, err := FindTreeName(s, name)
				require.NoError(t, err, name)
				require.Equal(t, e, found, name)
			}
			branch := s.Branch(e)
			for place, at := range branch.Entries() {
				name := PathName(s, place, at)
				checkName(t, name)
				require.True(t, strings.HasPrefix(name, fmt.Sprintf("%06d-", place+1)) && strings.HasSuffix(name, "-"+s.Name(at)+EntrySuffix), name)
				found, err := FindPathName(s, branch, name)
				require.NoError(t, err, name)
				require.Equal(t, at, found, name)
			}
		}
		deep := map[sessioncore.Entry]bool{}
		for _, e := range Beginnings(s) {
			require.False(t, deep[e], ".deep lists an entry twice")
			require.True(t, tree.Has(e))
			deep[e] = true
		}
	})
}

func checkName(t *testing.T, name string) {
	require.NotEmpty(t, name)
	text := name
	if strings.Contains(name, "~") { // cut at 200 bytes, which may be within a character
		text = strings.ToValidUTF8(name, "")
		require.Less(t, len(name)-len(text), utf8.UTFMax)
	}
	require.True(t, utf8.ValidString(text), "%q", name)
	require.LessOrEqual(t, len(name), 255)
	require.False(t, name[0] == '.' || name[0] == '-' || strings.ContainsAny(name, "/\x00"), "%q", name)
}

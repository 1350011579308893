package claude

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/agents/agentstest"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
)

// projects is a directory with the file -w/s.jsonl, and its sessions.
type projects struct {
	*agents.Files
	dir string
}

const session = "-w/s.jsonl"

func newProjects(t testing.TB) *projects {
	p := &projects{dir: t.TempDir()}
	require.NoError(t, os.MkdirAll(filepath.Join(p.dir, "-w"), 0o700))
	p.Files = agents.NewFiles(NewProjects(sessiontest.OpenDir(t, p.dir)), Format{}, nil, t.TempDir())
	return p
}

func (p *projects) write(t *testing.T, text string) {
	require.NoError(t, os.WriteFile(filepath.Join(p.dir, session), []byte(text), 0o600))
}

func (p *projects) add(t *testing.T, text string) {
	sessiontest.AppendTo(t, filepath.Join(p.dir, session), text)
}

// read returns the whole text of an open session.
func read(t *testing.T, obj storage.Object) string {
	st, err := obj.Stat()
	require.NoError(t, err)
	text := make([]byte, st.Size)
	require.NoError(t, storage.ReadFull(obj, text, 0))
	return string(text)
}

func (p *projects) open(t *testing.T) storage.Object {
	obj, err := p.Open(session)
	require.NoError(t, err)
	return obj
}

// TestGrowth: at each state of a file that is written in pieces of any size, what is shown is what the same file shows that
// was never seen before, in whole entries; and who has it open goes on or keeps what there was.
func TestGrowth(t *testing.T) {
	for name, lines := range map[string][]string{
		"plain": {
			user("u1", "", "hello"), says("a1", "u1", "M", callBlock("c1"), 1), result("r1", "a1", "c1", "one"),
			says("a2", "a1", "M", callBlock("c2"), 7), result("r2", "a2", "c2", "two"), says("a3", "r2", "N", textBlock("so"), 3),
			leafOf(`"leafUuid":"a1","explicit":true`), user("u2", "a1", "other"), "",
		},
		"learned": {
			"no JSON", user("u1", "", "hello"), says("a1", "p1", "M", textBlock("hi"), 1), rec("progress", "p1", "u1", `"data":{}`),
			says("b1", "a1", "N", textBlock("other"), 2), says("a2", "b1", "M", textBlock("two"), 9), user("u1", "", "again"),
			user("u2", "a2", "look"), user("u3", "u2", "on"), "{", rec("system", "x1", "u3", `"snipMetadata":{"removedUuids":["u2"]}`),
			boundaryOf("s1", "u3", `"preTokens":1`), summaryOf("s2", "s1", "In short"), user("u4", "s2", "so"), "",
		},
	} {
		t.Run(name, func(t *testing.T) { checkGrowth(t, strings.Join(lines, "\n"), 50, 333, 700) })
	}
}

func checkGrowth(t *testing.T, file string, steps ...int) {
	for _, step := range steps {
		live := newProjects(t)
		live.write(t, "")
		var kept storage.Object
		var before string
		for at := 0; at < len(file); at += step {
			live.add(t, file[at:min(at+step, len(file))])
			obj := live.open(t)
			now := read(t, obj)
			fresh := newProjects(t)
			fresh.write(t, file[:min(at+step, len(file))])
			again := fresh.open(t)
			require.Equal(t, read(t, again), now)
			require.NoError(t, again.Close())
			agentstest.Entries(t, now)
			st, err := live.Stat(session)
			require.NoError(t, err)
			opened, err := obj.Stat()
			require.NoError(t, err)
			require.Equal(t, st, opened)
			if kept != nil {
				was := read(t, kept)
				require.True(t, was == now && strings.HasPrefix(now, before) || was == before, "%q\n%q", was, before)
				require.NoError(t, kept.Close())
			}
			kept, before = obj, now
		}
		require.NoError(t, kept.Close())
		require.ErrorIs(t, kept.Close(), fs.ErrClosed)
	}
}

// TestReplaced: a file that was replaced or cut is another one, and who has the old one open keeps it.
func TestReplaced(t *testing.T) {
	p := newProjects(t)
	p.write(t, user("u1", "", "first")+"\n")
	obj := p.open(t)
	first := read(t, obj)
	other := filepath.Join(p.dir, "other")
	require.NoError(t, os.WriteFile(other, []byte(user("u9", "", "second, and longer than the first")+"\n"), 0o600))
	require.NoError(t, os.Rename(other, filepath.Join(p.dir, session)))
	now := p.open(t)
	require.Contains(t, read(t, now), "second")
	require.Equal(t, first, read(t, obj))
	was, err := obj.Stat()
	require.NoError(t, err)
	is, err := p.Stat(session)
	require.NoError(t, err)
	require.False(t, was.SameObject(is.Token))
	require.NoError(t, obj.Close())
	require.NoError(t, now.Close())
	p.write(t, user("u1", "", "x")+"\n")
	obj = p.open(t)
	require.NotContains(t, read(t, obj), "second")
	require.NoError(t, obj.Close())
}

// TestBeginning: to look at the beginning of a session does not convert it.
func TestBeginning(t *testing.T) {
	p := newProjects(t)
	var file strings.Builder
	file.WriteString(user("u0", "", "hello") + "\n")
	for i := range 2000 {
		file.WriteString(says(fmt.Sprint("a", i+1), fmt.Sprint("a", i), fmt.Sprint("M", i), textBlock(strings.Repeat("word ", 40)), 1) + "\n")
	}
	file.WriteString(`{"type":"ai-title","aiTitle":"What it is about"}` + "\n")
	p.write(t, file.String())
	obj := p.open(t)
	beginning, _, _, err := obj.(sessioncore.Converted).Beginning()
	require.NoError(t, err)
	raw, err := p.Files.Files.Stat(session)
	require.NoError(t, err)
	st, err := p.Stat(session)
	require.NoError(t, err)
	require.Equal(t, raw, st, "it was converted")
	whole := read(t, obj)
	require.Equal(t, whole[:len(beginning)], string(beginning))
	require.Contains(t, whole, "What it is about")
	require.NoError(t, obj.Close())
}

// TestGarbage: a file of bytes is no session, and bytes between records are problems.
func TestGarbage(t *testing.T) {
	p := newProjects(t)
	garbage := make([]byte, 1<<20)
	for i := range garbage {
		garbage[i] = byte(i * i >> 3)
	}
	p.write(t, string(garbage))
	store := sessioncore.NewStore(p)
	_, err := store.Session(session).Acquire(context.Background())
	require.ErrorIs(t, err, sessioncore.ErrNotSession)
	p.add(t, "\n"+user("u1", "", "hello")+"\n"+string(garbage)+"\n"+user("u2", "u1", "on")+"\n")
	snap := sessiontest.Snapshot(t, store.Session(session))
	require.Equal(t, 1, len(snap.Tree().Roots()))
	_, problems := snap.Problems()
	require.NotZero(t, problems)
	leaf := sessiontest.Leaf(t, snap)
	id, _ := snap.ID(leaf)
	require.Equal(t, "u2", id)
}

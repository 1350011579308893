package claude

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/agents/agentstest"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
)

// projects is a home with the file -w/s.jsonl below its projects.
type projects struct{ *agentstest.Home }

const session = "-w/s.jsonl"

func newProjects(t testing.TB) *projects { return &projects{agentstest.New(t, "claude")} }

// path returns the path of a file of a project.
func (p *projects) path(name string) string { return filepath.Join(p.Dir, projectsDir, name) }

// put writes a file of a project.
func (p *projects) put(name string, lines ...string) { p.Put(projectsDir+"/"+name, lines...) }

// open opens the session, until the test ends.
func (p *projects) open(t *testing.T) storage.Object {
	obj, err := p.Open(session)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, obj.Close()) })
	return obj
}

// TestReplaced: a file that was replaced or cut is another one, and who has the old one open keeps it.
func TestReplaced(t *testing.T) {
	p := newProjects(t)
	p.put(session, user("u1", "", "first"))
	obj := p.open(t)
	first := storagetest.ReadObject(t, obj)
	p.put("other", user("u9", "", "second, and longer than the first"))
	require.NoError(t, os.Rename(p.path("other"), p.path(session)))
	require.Contains(t, p.Read(session), "second")
	require.Equal(t, first, storagetest.ReadObject(t, obj))
	was, err := obj.Stat()
	require.NoError(t, err)
	require.False(t, was.SameObject(storagetest.Stat(t, p, session).Token))
	p.put(session, user("u1", "", "x"))
	require.NotContains(t, p.Read(session), "second")
}

// TestBeginning: to look at the beginning of a session does not convert it.
func TestBeginning(t *testing.T) {
	p := newProjects(t)
	var file strings.Builder
	file.WriteString(user("u0", "", "hello") + "\n")
	block := textBlock(strings.Repeat("word ", 40))
	for i := range 2000 {
		uuid := fmt.Sprint("a", i+1)
		parent := fmt.Sprint("a", i)
		message := fmt.Sprint("M", i)
		file.WriteString(says(uuid, parent, message, block, 1) + "\n")
	}
	file.WriteString(`{"type":"ai-title","aiTitle":"What it is about"}` + "\n")
	p.put(session, file.String())
	obj := p.open(t)
	beginning, _, _, err := obj.(sessioncore.Converted).Beginning()
	require.NoError(t, err)
	raw, err := p.Files.Files.Stat(session)
	require.NoError(t, err)
	require.Equal(t, raw, storagetest.Stat(t, p, session), "it was converted")
	whole := storagetest.ReadObject(t, obj)
	require.Equal(t, whole[:len(beginning)], string(beginning))
	require.Contains(t, whole, "What it is about")
}

// TestGarbage: a file of bytes is no session, and bytes between records are problems.
func TestGarbage(t *testing.T) {
	p := newProjects(t)
	garbage := make([]byte, 1<<20)
	for i := range garbage {
		garbage[i] = byte(i * i >> 3) // all bytes, in no short cycle
	}
	p.put(session, string(garbage))
	store := sessioncore.NewStore(p)
	_, err := store.Session(session).Acquire(context.Background())
	require.ErrorIs(t, err, sessioncore.ErrNotSession)
	p.put(session, string(garbage), user("u1", "", "hello"), string(garbage), user("u2", "u1", "on"))
	snap := sessiontest.Snapshot(t, store.Session(session))
	require.Equal(t, 1, len(snap.Tree().Roots()))
	_, problems := snap.Problems()
	require.NotZero(t, problems)
	leaf := sessiontest.Leaf(t, snap)
	id, _ := snap.ID(leaf)
	require.Equal(t, "u2", id)
}

package listing

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// countingStorage counts calls.
type countingStorage struct {
	*memory.Storage
	stats, lists, opens atomic.Int64

	announced sync.Map     // the names of ReadAhead
	panics    bool         // ReadAhead does so at its end
	surprises atomic.Int64 // opens of names that were not announced
}

// ReadAhead implements storage.Files.
func (c *countingStorage) ReadAhead(names []string) {
	for _, name := range names {
		c.announced.Store(name, true)
	}
	if c.panics {
		panic("a row like no other")
	}
}

// Stat implements storage.Files.
func (c *countingStorage) Stat(name string) (storage.Stat, error) {
	c.stats.Add(1)
	return c.Storage.Stat(name)
}

// List implements storage.Files.
func (c *countingStorage) List(dir string, only []string, f func(storage.Item) bool) error {
	c.lists.Add(1)
	return c.Storage.List(dir, only, f)
}

// Open implements storage.Files.
func (c *countingStorage) Open(name string) (storage.Object, error) {
	c.opens.Add(1)
	_, isAnnounced := c.announced.Load(name)
	if !isAnnounced {
		c.surprises.Add(1)
	}
	return c.Storage.Open(name)
}

// work is the numbers of calls.
type work struct{ stats, lists, opens int64 }

// work returns the numbers of calls since it was last called.
func (c *countingStorage) work() work {
	return work{c.stats.Swap(0), c.lists.Swap(0), c.opens.Swap(0)}
}

// TestListingWork: listing 10,000 sessions opens each file once, and after that only what changed.
func TestListingWork(t *testing.T) {
	const sessions, dirs = 10_000, 20
	files := &countingStorage{Storage: memory.New()}
	name := func(n int) string { return fmt.Sprintf("p%d/2026_%05d.jsonl", n%dirs, n) }
	for n := range sessions {
		text := fmt.Sprintf(`{"type":"session","id":"%05d","cwd":"/home/%d"}`+"\n", n, n%100)
		require.NoError(t, files.WriteFile(name(n), []byte(text)))
	}
	l := newListing(t, files)
	require.Equal(t, work{}, files.work(), "nothing is read before a query")
	for range 2 {
		_, err := l.Stat(context.Background())
		require.NoError(t, err)
	}
	require.Equal(t, work{stats: 2, lists: 2}, files.work(), "the times of the directories are all that a listing of the mount needs")
	look := func() *Sessions {
		found, err := l.Sessions(context.Background())
		require.NoError(t, err)
		return found
	}
	first := look()
	require.Len(t, first.All(), sessions)
	require.Equal(t, work{stats: dirs + 1, lists: dirs + 1, opens: sessions}, files.work())
	require.Same(t, first, look(), "nothing is sorted or made anew")
	require.Equal(t, work{stats: dirs + 1, lists: dirs}, files.work())

	_, err := files.Append(name(77), []byte("{}\n"))
	require.NoError(t, err)
	require.Equal(t, "00077", look().All()[0].ID, "modified last")
	require.Equal(t, work{stats: dirs + 1, lists: dirs, opens: 1}, files.work())

	for by, find := range map[string]func() string{
		"id":  func() string { return l.resume(t, "00042") },
		"cwd": func() string { return l.named(t, ByCwd, "/home/42", "00042") },
	} {
		require.Equal(t, name(42), find(), by)
		got := files.work()
		require.LessOrEqual(t, got.stats, int64(dirs+4), by)
		got.stats = 0
		require.Equal(t, work{}, got, "by %s: only the directories and the file are looked at", by)
	}
	require.Equal(t, name(9942), l.named(t, ByCwd, "/home/42", "latest"))
	require.Equal(t, work{stats: dirs + 1 + sessions/100}, files.work(), "and those of one directory")
	require.Empty(t, l.resume(t, "no such id"))
	require.Equal(t, int64(dirs), files.work().lists, "before it says no, it looks at all")

	l = newListing(t, files)
	require.Equal(t, name(42), l.resume(t, "00042"), "the first question of all")
	got := files.work()
	require.EqualValues(t, sessions, got.opens, "names tell no ids here")
	require.EqualValues(t, dirs+1, got.lists)
}

// ids returns the ids of the listed sessions, most recently modified first.
func ids(t *testing.T, l *Listing) string {
	var ids []string
	for _, info := range l.all(t) {
		ids = append(ids, info.ID)
	}
	return strings.Join(ids, " ")
}

// headerLine is the header of a session in a directory.
func headerLine(id, cwd string) string {
	return fmt.Sprintf(`{"type":"session","version":3,"id":"%s","timestamp":"2026-02-16T10:20:30.000Z","cwd":"%s"}`, id, cwd) + "\n"
}

// TestListingIsTrue: lists and queries of one session see any change of the files. There are no pauses: changes follow
// each other faster than the clock of file times ticks.
func TestListingIsTrue(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) { sessiontest.WriteFile(t, path(name), text) }
	add := func(name, text string) { sessiontest.AppendTo(t, path(name), text) }
	l := listDir(t, dir)
	resumes := func(key, want string) { require.Equal(t, want, l.resume(t, key), key) }
	old := func(name string) {
		at := time.Now().Add(-time.Hour)
		require.NoError(t, os.Chtimes(path(name), at, at))
	}
	for round := range 50 {
		id := fmt.Sprintf("r%d-", round)
		d := fmt.Sprintf("p%d/", round%3)
		require.Empty(t, ids(t, l))
		resumes(id+"a", "")
		write(d+"a.jsonl", headerLine(id+"a", "/a"))
		resumes(id+"A", d+"a.jsonl")
		write(d+"b.jsonl", "") // made, and filled later
		resumes(id+"b", "")
		require.Equal(t, id+"a", ids(t, l))
		add(d+"b.jsonl", headerLine(id+"b", "/b"))
		resumes(id+"b", d+"b.jsonl")
		old(d + "a.jsonl")
		require.Equal(t, id+"b "+id+"a", ids(t, l))
		resumes(id, d+"b.jsonl")
		add(d+"a.jsonl", "{}\n")
		old(d + "b.jsonl")
		resumes(id, d+"a.jsonl")
		require.Equal(t, id+"a "+id+"b", ids(t, l))
		require.Equal(t, d+"a.jsonl", l.named(t, ByCwd, "/a", "latest"))
		write("new"+id+"/c.jsonl", headerLine(id+"c", "/a")) // in a directory that is new
		require.Equal(t, "new"+id+"/c.jsonl", l.named(t, ByCwd, "/a", "latest"))
		require.NoError(t, os.Rename(path("new"+id+"/c.jsonl"), path(d+"c.jsonl")))
		resumes(id+"c", d+"c.jsonl")
		write(d+"d.jsonl", headerLine(id+"c", "/a")) // a copy of an id, newer
		resumes(id+"c", d+"d.jsonl")
		require.NoError(t, os.Remove(path(d+"d.jsonl")))
		resumes(id+"c", d+"c.jsonl")
		write(d+"c.jsonl", headerLine(id+"x", "/x")) // overwritten in place
		resumes(id+"c", "")
		resumes(id+"x", d+"c.jsonl")
		require.NoError(t, os.RemoveAll(path("new"+id)))
		require.NoError(t, os.RemoveAll(path(d)))
		require.Empty(t, l.named(t, ByCwd, "/", "a"))
	}
}

// TestListingDirectories: a list has the sessions directly in a directory, and in the root for the dialect of
// operator. It has no hidden names and no links.
func TestListingDirectories(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"p/a.jsonl", "-q/b.jsonl", ".h/c.jsonl", "p/.d.jsonl", "p/e/f.jsonl", "g.jsonl", "p/h.JSONL", "p/i.jsonl.0f.bak",
		"p/j", "dir.jsonl/k.jsonl"} {
		sessiontest.WriteFile(t, filepath.Join(dir, name), headerLine(name, "/"))
	}
	require.NoError(t, os.Symlink("a.jsonl", filepath.Join(dir, "p/link.jsonl")))
	require.NoError(t, os.Symlink("p", filepath.Join(dir, "linked")))
	operator := `{"type":"session_header","id":"op","timestamp":1768000000000,"cwd":"/w"}` + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "op.jsonl"), []byte(operator), 0o644))
	l := listDir(t, dir)
	listed := strings.Fields(ids(t, l))
	require.ElementsMatch(t, []string{"p/a.jsonl", "-q/b.jsonl", "g.jsonl", "dir.jsonl/k.jsonl", "op"}, listed)
}

// TestLookReadsAhead: files are announced before they are opened, however many there are; a storage that panics then takes
// neither the process nor the list with it.
func TestLookReadsAhead(t *testing.T) {
	files := &countingStorage{Storage: memory.New(), panics: true}
	n := 2*readBatch + 10
	for i := range n {
		require.NoError(t, files.WriteFile(fmt.Sprintf("p%d/%d.jsonl", i%5, i), []byte(headerLine(fmt.Sprint(i), "/"))))
	}
	require.Len(t, newListing(t, files).all(t), n)
	require.EqualValues(t, n, files.opens.Load())
	require.Zero(t, files.surprises.Load())
}

// TestRacyTimes: files and directories that changed within a tick of the clock of file times are read again, since a
// token of that moment proves nothing. With a later token they are not.
func TestRacyTimes(t *testing.T) {
	for racy, want := range map[bool][]string{true: {"a2", "b1", "c1"}, false: {"a1"}} {
		mem := memory.New()
		l := newListing(t, &storagetest.Stopped{Storage: mem, At: storagetest.Ticking(racy)})
		require.NoError(t, mem.WriteFile("p/a.jsonl", []byte(headerLine("a1", "/w"))))
		require.Equal(t, "a1", ids(t, l))
		require.NoError(t, mem.WriteFile("p/a.jsonl", []byte(headerLine("a2", "/w"))))
		require.NoError(t, mem.WriteFile("p/b.jsonl", []byte(headerLine("b1", "/w"))))
		require.NoError(t, mem.WriteFile("q/c.jsonl", []byte(headerLine("c1", "/w"))))
		require.ElementsMatch(t, want, strings.Fields(ids(t, l)), "racy: %v", racy)
	}
}

// TestRemovedWithoutASign: a session that is gone, though the token of its directory is as it was, is no longer listed, and is
// not found.
func TestRemovedWithoutASign(t *testing.T) {
	for name, look := range map[string]func(l *Listing){
		"all":    func(l *Listing) { require.Equal(t, "a", ids(t, l)) },
		"resume": func(l *Listing) { require.Empty(t, l.resume(t, "b")) },
	} {
		mem := memory.New()
		l := newListing(t, &storagetest.Stopped{Storage: mem, At: storagetest.Ticking(false)})
		for _, id := range []string{"a", "b", "c"} {
			require.NoError(t, mem.WriteFile("p/"+id+".jsonl", []byte(headerLine(id, "/w"))))
		}
		require.Len(t, l.all(t), 3, name)
		require.NoError(t, mem.Remove("p/b.jsonl"))
		require.NoError(t, mem.Remove("p/c.jsonl"))
		look(l)
	}
}

// TestTreeAfterRemoval: a session that is removed from a directory of several is gone from the trees.
func TestTreeAfterRemoval(t *testing.T) {
	mem := memory.New()
	l := newListing(t, mem)
	names := func() (names []string) {
		list, err := l.TreeList(t.Context(), ByCwd, "/w")
		require.NoError(t, err)
		for _, e := range list {
			names = append(names, e.Name)
		}
		return names
	}
	for _, id := range []string{"a", "b"} {
		l.write(t, "p/"+id+".jsonl", headerLine(id, "/w"))
	}
	require.Len(t, names(), 3, "and latest")
	require.NoError(t, mem.Remove("p/b.jsonl"))
	require.Len(t, names(), 2)
}

// TestAgentWithoutDirectory: of several agents one may have no sessions.
func TestAgentWithoutDirectory(t *testing.T) {
	mem := memory.New()
	require.NoError(t, mem.WriteFile("omp/p/a.jsonl", []byte(headerLine("a", "/w"))))
	store := sessioncore.NewStore(mem)
	t.Cleanup(store.Close)
	require.Equal(t, "a", ids(t, NewOf(store, "codex", "omp")))
	_, err := New(sessioncore.NewStore(&storagetest.Hooked{Storage: mem, Before: func(storagetest.Call) error {
		return storage.ErrUnsupported
	}}), "").Sessions(t.Context())
	require.ErrorIs(t, err, storage.ErrUnsupported)
}

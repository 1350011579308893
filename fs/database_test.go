package fs_test

import (
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	sessionfs "sessionfs/fs"
	"sessionfs/mountopts"
	"sessionfs/sessioncore/storage/postgres/postgrestest"
)

// A mount of a database shows and writes what a mount of a directory does (docs/design.md section 1, A database as
// SOURCE).

// rowsPrefix is what the paths of the rows begin with.
const rowsPrefix = "/home/me/.omp/agent/sessions/"

// database is a mounted table.
type database struct {
	*mount
	table *postgrestest.Table
}

// mountTable mounts a table.
func mountTable(t testing.TB, table *postgrestest.Table, opts ...mountOption) database {
	t.Helper()
	return database{mountForTest(t, table.Source("&prefix="+rowsPrefix), opts...), table}
}

// withRow mounts a new table with the session sessions/p/s.
func withRow(t testing.TB, server *postgrestest.Server, content string) database {
	table := server.NewTable(t)
	table.Write(t, rowsPrefix+"p/s.jsonl", content)
	return mountTable(t, table)
}

// row is the content of sessions/p/s.jsonl in the table.
func (d database) row() string { return d.table.Content(d.t, rowsPrefix+"p/s.jsonl") }

// inTable makes rows of the files below a directory of sessions, with their times, and gives those whole milliseconds.
func inTable(t testing.TB, table *postgrestest.Table, dir string) {
	require.NoError(t, filepath.WalkDir(dir, func(path string, item fs.DirEntry, err error) error {
		if err != nil || item.IsDir() {
			return err
		}
		text := read(t, path)
		info, err := item.Info()
		require.NoError(t, err)
		at := time.UnixMilli(info.ModTime().UnixMilli())
		require.NoError(t, os.Chtimes(path, at, at))
		name, err := filepath.Rel(dir, path)
		require.NoError(t, err)
		table.Write(t, rowsPrefix+name, string(text))
		table.Do(t, `UPDATE `+table.Name+` SET mtime_ms = $2 WHERE path = $1`, rowsPrefix+name, at.UnixMilli())
		return nil
	}))
}

// TestDatabaseIsAsADirectory: every file, link and listing is that of a mount of the same files.
func TestDatabaseIsAsADirectory(t *testing.T) {
	table := postgrestest.Shared(t).NewTable(t)
	source := demo(t)
	inTable(t, table, filepath.Join(source, "sessions"))
	want := mountForTest(t, source)
	got := mountTable(t, table, func(o *daemonOptions) { o.Blobs = filepath.Join(source, "blobs") })
	for _, name := range []string{"sessions", "blobs", "by-cwd", "by-date", "by-id", "recent", "index.jsonl", "usage.jsonl", "lost.tsv"} {
		run(t, "diff", "-r", "--no-dereference", want.path(name), got.path(name))
	}
	for _, name := range []string{"by-file/home/dev/tidetable/results.tsv", "search/tide/results.tsv"} {
		require.Equal(t, run(t, "cat", want.path(name)), run(t, "cat", got.path(name)))
		require.Greater(t, strings.Count(run(t, "cat", got.path(name)), "\n"), 1)
	}
	list := `cd "$1" && find sessions -type f -printf '%P %s %T@\n' -o -printf '%P %y %l\n' | sort`
	require.Equal(t, shell(t, list, want.dir), shell(t, list, got.dir))
	require.Equal(t, []string{"README", "blobs", "by-cwd", "by-date", "by-file", "by-id", "last-error", "new-session", "recent",
		"search", "sessions"}, names(t, got.dir))
}

// TestDatabaseBlobs mounts a table with and without a blob directory. Without one, images stay in
// their entries, and references stay references. With a directory that two mounts share, each of them
// has the images that the other one stores.
func TestDatabaseBlobs(t *testing.T) {
	const reference = `blob:sha256:0123456789012345678901234567890123456789012345678901234567890123`
	table := postgrestest.Shared(t).NewTable(t)
	table.Write(t, rowsPrefix+"p/s.jsonl", header("s")+strings.Replace(entry(1, "e1", "", "IMAGE"), `"IMAGE"`, `[{"type":"image","data":"`+reference+`"}]`, 1))
	place := t.TempDir()
	inPlace := func(o *daemonOptions) { o.Blobs = place }
	none := mountTable(t, table)
	a := mountTable(t, table, inPlace)
	b := mountTable(t, table, inPlace)
	require.Equal(t, reference+"\n", run(t, "jq", "-r", ".messages[0].content[0].data", none.session("s", "context.json")))
	require.NoDirExists(t, none.path("blobs"))
	id := ask(t, none.session("s", "append"), bigImage(3000))
	require.Contains(t, run(t, "cat", none.session("s", "entries", id+".json")), "QUJDQUJD", "an image stays in the entry")

	ask(t, a.session("s", "append"), bigImage(900_000))
	var hashes []string
	require.Eventually(t, func() bool {
		hashes = names(t, b.path("blobs"))
		return len(hashes) == 1
	}, patience, 10*time.Millisecond)
	require.Eventually(t, func() bool { return len(names(t, b.session("s", "entries"))) == 3 }, patience, 10*time.Millisecond)
	for _, d := range []database{a, b} {
		require.True(t, strings.Repeat("ABC", 300_000) == string(read(t, d.path("blobs", hashes[0]))))
		require.Equal(t, strings.Repeat("QUJD", 300_000)+"\n", run(t, "jq", "-r", ".messages[-1].content[0].data", d.session("s", "context.json")))
	}
	ask(t, b.session("s", "append"), bigImage(900_000))
	require.Equal(t, hashes, names(t, a.path("blobs")), "the same image is there once")
	gone := mountopts.Options{Source: table.Source("&prefix=" + rowsPrefix), Blobs: place + "/gone"}
	_, err := sessionfs.Open(gone, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "-o blobs")
}

// TestDatabaseWrites: every write does to the row what it does to a file, and what a client or another mount writes shows.
// TestDatabaseKilled has many writers at once.
func TestDatabaseWrites(t *testing.T) {
	d := withRow(t, postgrestest.Shared(t), header("s")+entry(1, "e1", "", "one")+entry(2, "e2", "e1", "two"))
	before := d.row()
	id := ask(t, d.session("s", "append"), message("three"))
	run(t, "ln", "-sfn", "e1", d.session("s", "leaf"))
	require.Equal(t, "entries/e1.json", readLink(t, d.session("s", "leaf")))
	require.True(t, strings.HasPrefix(d.row(), before), "it only grew")
	added := records(t, d.row()[len(before):])
	require.Equal(t, []string{id, "e2"}, []string{added[0].ID, added[0].parent()})
	require.NoError(t, put(d.session("s", "title"), "A title\n"))
	require.Contains(t, d.row(), `"title":"A title"`)
	forked := ask(t, d.session("s", "fork"), "e2")
	require.Equal(t, rowsPrefix+"p/s.jsonl\n", run(t, "jq", "-r", ".parentSession", d.path(forked, "header.json")))
	require.FileExists(t, d.path(forked, "parent", "header.json"))
	require.Contains(t, d.table.Content(t, rowsPrefix+strings.TrimPrefix(forked, "sessions/")+".jsonl"), `"e2"`)

	made := ask(t, d.path("new-session"), anywhere("/home/dev/project"))
	path := rowsPrefix + strings.TrimPrefix(made, "sessions/") + ".jsonl"
	require.Regexp(t, `^\{"type":"session",.*"cwd":"/home/dev/project"\}\n$`, d.table.Content(t, path), "a row at once, the header alone")
	ask(t, d.path(made, "append"), message("hello"))
	require.Regexp(t, `^\{"type":"session",.*\n.*"hello".*\n$`, d.table.Content(t, path))

	require.ErrorIs(t, put(d.session("s", "append"), `{"type":"message","message":{"role":7}}`+"\n"), syscall.EINVAL)
	require.Contains(t, run(t, "cat", d.session("s", "last-error")), "message.role")

	other := mountTable(t, d.table)
	d.table.Append(t, rowsPrefix+"p/s.jsonl", entry(9, "client", "e2", "by a client"))
	id = ask(t, other.session("s", "append"), message("by another mount"))
	for _, path := range []string{d.session("s", "entries/client.json"), other.session("s", "entries/client.json"), d.session("s", "entries", id+".json")} {
		require.Eventually(t, func() bool {
			_, err := os.Stat(path)
			return err == nil
		}, patience, 10*time.Millisecond, path)
	}
}

// TestDatabasePeople: a table of several people shows all of them, each at a place of his own, and writes to each row.
func TestDatabasePeople(t *testing.T) {
	const ann, bob = "/home/ann/.omp/agent/sessions/--p--/", "/Users/bob/.omp/agent/sessions/--p--/"
	table := postgrestest.Shared(t).NewTable(t)
	table.Write(t, ann+"a.jsonl", header("a")+entry(1, "e1", "", "the tide of ann"))
	table.Write(t, bob+"b.jsonl", strings.Replace(header("b"), `"id"`, `"parentSession":"`+ann+`a.jsonl","id"`, 1)+entry(1, "e1", "", "the tide of bob"))
	t.Setenv("HOME", "/home/eve")
	m := mountForTest(t, table.Source(""))
	require.Equal(t, []string{"ann", "bob"}, names(t, m.path("sessions")))
	require.Equal(t, "\"ann\" \"sessions/ann/--p--/a\"\n\"bob\" \"sessions/bob/--p--/b\"\n",
		shell(t, `jq -r '"\(.who|@json) \(.path|@json)"' "$1"/index.jsonl | sort`, m.dir))
	require.Len(t, names(t, m.path("by-id")), 2)
	require.Len(t, names(t, m.path("recent")), 2)
	require.Equal(t, 3, strings.Count(run(t, "cat", m.path("search/tide/results.tsv")), "\n"))
	require.FileExists(t, m.path("sessions/bob/--p--/b/parent/header.json"))

	id := ask(t, m.path("sessions/bob/--p--/b/append"), message("two"))
	require.Contains(t, table.Content(t, bob+"b.jsonl"), id)
	forked := ask(t, m.path("sessions/ann/--p--/a/fork"), "e1")
	require.True(t, strings.HasPrefix(forked, "sessions/ann/--p--/"))
	require.Contains(t, table.Content(t, ann+path.Base(forked)+".jsonl"), `"parentSession":"`+ann+`a.jsonl"`)

	require.ErrorIs(t, put(m.path("new-session"), anywhere("/home/dev/project")+"\n"), syscall.EPERM)
	require.Contains(t, run(t, "cat", m.path("last-error")), "mount with prefix=")
	table.Write(t, "/home/eve/.omp/agent/sessions/--q--/c.jsonl", header("c"))
	require.Eventually(t, func() bool { return len(names(t, m.path("sessions"))) == 3 }, patience, 10*time.Millisecond)
	made := ask(t, m.path("new-session"), anywhere("/home/dev/project"))
	require.True(t, strings.HasPrefix(made, "sessions/eve/"), made)
	require.Equal(t, 5, strings.Count(run(t, "cat", m.path("index.jsonl")), "\n"))
}

// TestDatabaseBreaks: without the database what is kept can be read, the rest is EIO with its reason, and it comes back.
func TestDatabaseBreaks(t *testing.T) {
	server := postgrestest.New(t)
	d := withRow(t, server, header("s")+entry(1, "e1", "", "one"))
	long := header("t") + entry(1, "e1", "", strings.Repeat("x", 100_000))
	d.table.Write(t, rowsPrefix+"p/t.jsonl", long)
	require.Eventually(t, func() bool {
		_, err := os.Stat(d.session("t.jsonl"))
		return err == nil
	}, patience, 10*time.Millisecond)
	kept := run(t, "cat", d.session("s", "transcript.md"), d.session("s.jsonl"))
	server.Kill()
	require.Equal(t, kept, run(t, "cat", d.session("s", "transcript.md"), d.session("s.jsonl")))
	_, err := os.ReadFile(d.session("t.jsonl"))
	require.ErrorIs(t, err, syscall.EIO)
	require.ErrorIs(t, put(d.session("s", "append"), message("two")+"\n"), syscall.EIO)
	require.Regexp(t, `append: .*the database cannot be reached: input/output error .*;`, run(t, "cat", d.session("s", "last-error")))
	require.Regexp(t, `Z database: the database cannot be reached: .*\n$`, run(t, "cat", d.path("last-error")))
	require.Contains(t, d.logged(), "the database cannot be reached")
	require.NoError(t, server.Start())
	require.Eventually(t, func() bool {
		_, err := os.ReadFile(d.session("t.jsonl"))
		return err == nil
	}, patience, 10*time.Millisecond)
	require.Equal(t, long, run(t, "cat", d.session("t.jsonl")))
	require.Eventually(t, func() bool { return run(t, "cat", d.path("last-error")) == "" }, patience, 10*time.Millisecond)
	ask(t, d.session("s", "append"), message("two"))
	require.Empty(t, run(t, "cat", d.session("s", "last-error")))
}

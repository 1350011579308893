package fs_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage/postgres/postgrestest"
)

// copyTarget is a SOURCE without sessions, into which files are copied: a directory, or a table.
type copyTarget struct {
	t     testing.TB
	agent agent               // if table is nil
	table *postgrestest.Table // else nil
}

// copyTargets runs a test with each kind of SOURCE into which files are copied.
func copyTargets(t *testing.T, test func(t *testing.T, to copyTarget)) {
	t.Run("directory", func(t *testing.T) {
		t.Parallel()
		source := agent{t, scratch(t)}
		require.NoError(t, os.MkdirAll(filepath.Join(source.dir, "sessions"), 0o755))
		test(t, copyTarget{t: t, agent: source})
	})
	t.Run("database", func(t *testing.T) {
		t.Parallel()
		test(t, copyTarget{t: t, table: postgrestest.Shared(t).NewTable(t)})
	})
}

// mount mounts it, with or without an empty directory sessions/p.
func (c copyTarget) mount(project bool) *mount {
	source := c.agent.dir
	if c.table != nil {
		source = c.table.Source("&prefix=" + rowsPrefix)
	}
	m := mountForTest(c.t, source)
	if project {
		require.NoError(c.t, os.MkdirAll(m.path("sessions/p"), 0o755))
	}
	return m
}

// write makes sessions/p/<name>.jsonl, as somebody else does.
func (c copyTarget) write(name, content string) {
	if c.table != nil {
		c.table.Write(c.t, rowsPrefix+"p/"+name+".jsonl", content)
		return
	}
	require.NoError(c.t, os.MkdirAll(c.agent.path(""), 0o755))
	c.agent.write(name, content)
}

// raw is what is in SOURCE of sessions/p/<name>.jsonl.
func (c copyTarget) raw(name string) string {
	if c.table != nil {
		return c.table.Content(c.t, rowsPrefix+"p/"+name+".jsonl")
	}
	return c.agent.raw(name)
}

// state is everything that is in SOURCE, in a form that can be compared.
func (c copyTarget) state() (all string) {
	if c.table == nil {
		return statListing(c.t, c.agent.dir)
	}
	rows, err := c.table.Query(context.Background(), `SELECT r::text || xmin::text FROM `+c.table.Name+` r ORDER BY path`)
	require.NoError(c.t, err)
	defer rows.Close()
	for rows.Next() {
		var row string
		require.NoError(c.t, rows.Scan(&row))
		all += row + "\n"
	}
	require.NoError(c.t, rows.Err())
	return all
}

// dir is a directory like sessions/ with what is in SOURCE.
func (c copyTarget) dir() string {
	if c.table == nil {
		return filepath.Join(c.agent.dir, "sessions")
	}
	dir := filepath.Join(scratch(c.t), "sessions")
	rows, err := c.table.Query(context.Background(), `SELECT path, content, mtime_ms FROM `+c.table.Name)
	require.NoError(c.t, err)
	defer rows.Close()
	for rows.Next() {
		var path, content string
		var ms int64
		require.NoError(c.t, rows.Scan(&path, &content, &ms))
		file := filepath.Join(dir, strings.TrimPrefix(path, rowsPrefix))
		require.NoError(c.t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(c.t, os.WriteFile(file, []byte(content), 0o600))
		require.NoError(c.t, os.Chtimes(file, time.UnixMilli(ms), time.UnixMilli(ms)))
	}
	require.NoError(c.t, rows.Err())
	return dir
}

// times is the time of the last change of sessions/p/<name>.jsonl in SOURCE.
func (c copyTarget) times(name string) string {
	if c.table == nil {
		return run(c.t, "stat", "-c", "%y", c.agent.path(name+".jsonl"))
	}
	var ms int64
	require.NoError(c.t, c.table.QueryRow(context.Background(), `SELECT mtime_ms FROM `+c.table.Name+` WHERE path = $1`,
		rowsPrefix+"p/"+name+".jsonl").Scan(&ms))
	return fmt.Sprintln(time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05.000"))
}

// TestCopiedIntoDatabase: what a row cannot hold is refused with a reason, and the rest is there: sessions, those of subagents
// too, with their times and titles. A second copy through another mount sends nothing.
func TestCopiedIntoDatabase(t *testing.T) {
	onceIsEnough(t)
	const name = "2026-03-30T07-12-41-318Z_019d3d96"
	to := copyTarget{t: t, table: postgrestest.Shared(t).NewTable(t)}
	m := to.mount(false)
	from := scratch(t)
	session := filepath.Join(from, "p", name+".jsonl")
	slot := fmt.Sprintf("%-253s\"}\n", `{"type":"title","v":1,"title":"A title","updatedAt":"2026-02-16T11:00:00.000Z","pad":"`)
	for file, content := range map[string]string{
		session: slot + header("s") + entry(1, entryID(1), "", strings.Repeat("x", 6<<20)),
		filepath.Join(from, "p", name, "t.jsonl"): header("t"),
		filepath.Join(from, "p", "u.jsonl"):       header("u"),
		filepath.Join(from, "p", name, "0.log"):   "a log\n",
		filepath.Join(from, "p", "bad.jsonl"):     header("bad") + "{\"a\":\"\xff\"}\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(content), 0o644))
		require.NoError(t, os.Chtimes(file, time.Time{}, time.Unix(1_700_000_000, 123456789)))
	}
	for _, script := range []string{`rsync -a "$1/" "$2/"`, `cp -an "$1/." "$2"`} {
		_, problem, err := tool(t, "bash", "-c", script, "bash", from, m.path("sessions"))
		require.Error(t, err)
		require.Contains(t, problem, "0.log")
		require.Contains(t, problem, "Operation not permitted")
		require.Contains(t, problem, "bad.jsonl")
		require.Contains(t, problem, "Invalid argument")
	}
	require.ErrorIs(t, os.WriteFile(m.path("sessions/p", name, "0.log"), nil, 0o644), syscall.EPERM)
	require.Contains(t, shell(t, `cat "$1"`, m.path("last-error")), "a database has no place for it")
	run(t, "cp", "-p", session, m.path("sessions/p/"+name+".jsonl")) // once more, over it
	require.ErrorIs(t, os.WriteFile(m.path("sessions/p/bad.jsonl"), []byte(header("bad")+"{\"a\":\"\xff\"}\n"), 0o644), syscall.EINVAL)
	require.Contains(t, shell(t, `cat "$1"`, m.path("last-error")), "not UTF-8")
	require.NoError(t, os.Remove(filepath.Join(from, "p", "bad.jsonl")))
	sessions := []string{"-rtm", "--include=*/", "--include=*.jsonl", "--exclude=*"} // as docs/team.md has it
	run(t, "rsync", append(sessions, from+"/", m.path("sessions")+"/")...)
	require.NoError(t, os.Remove(filepath.Join(from, "p", name, "0.log")))
	stored := to.dir()
	run(t, "diff", "-r", from, stored)
	require.Empty(t, run(t, "rsync", "-rtinO", from+"/", stored+"/"))
	require.Contains(t, to.state(), `"A title"`)
	require.Equal(t, "A title\n", run(t, "cat", m.path("sessions/p", name, "title")))
	require.FileExists(t, m.path("sessions/p", name, "t/header.json"))

	before := to.state()
	other := to.mount(false)
	for _, m := range []*mount{m, other} {
		require.Empty(t, run(t, "rsync", "-rtiO", from+"/", m.path("sessions")+"/"))
		run(t, "rsync", "-a", from+"/", m.path("sessions")+"/")
		require.Equal(t, before, to.state())
	}

	f, err := os.Create(m.path("sessions/p/v.jsonl"))
	require.NoError(t, err)
	_, err = f.WriteString(header("v"))
	require.NoError(t, err)
	require.Equal(t, before, to.state())
	require.NoFileExists(t, other.path("sessions/p/v.jsonl"))
	to.write("v", header("w"))
	require.ErrorIs(t, f.Close(), syscall.EEXIST, "somebody else was there before it was closed")
	require.Equal(t, header("w"), to.raw("v"))
}

//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"sessionfs/fs"
	"sessionfs/sessioncore/storage/postgres/postgrestest"
)

// TestDatabasePassword: one on the command line is refused before anything is started, and never said again.
func TestDatabasePassword(t *testing.T) {
	s := newStore(t, user{"self", os.Geteuid()})
	const secret = "s3cr3t"
	for _, source := range []string{"postgres://me:" + secret + "@h/d", "POSTGRESQL://me@h/d?password=" + secret} {
		for _, args := range [][]string{{source, s.mountpoint}, {"-f", source, s.mountpoint}, {"ls", "-s", source}} {
			r := s.run(args...)
			requireStatus(t, exitUsage, r, "~/.pgpass")
			require.NotContains(t, r.stdout+r.stderr, secret)
		}
	}
	// Nor where it is no SOURCE, or beside what is wrong for another reason.
	for _, source := range []string{"postgres://me:" + secret + "@h/d", "host=h password=" + secret} {
		for _, args := range [][]string{
			{source},
			{s.source, source},
			{"-o", "nope", source, s.mountpoint},
			{source, s.mountpoint, "x"},
			{"-u", source},
			{"status", source},
			{"import", "-s", s.source, source},
			{"ls", "-s", s.source, source},
			{"search", "-s", source, "x"},
			{"sql-trigger", source},
			{"lss", source},
			{"cat", source},
			{"ls", "-R", "-s", source},
			{"touched", "-s", s.source, source},
			{"bundle", "-s", s.source, source},
			{"check", "-s", source},
			{source, "/nowhere"},
		} {
			r := s.run(args...)
			require.NotZero(t, r.code, args)
			require.NotContains(t, r.stdout+r.stderr, secret, args)
		}
	}
	requireStatus(t, exitUsage, s.run("-o", "blobs=/b", s.source, s.mountpoint), "blobs=")
	requireStatus(t, exitSource, s.run("postgres://me@/d?host=/nowhere", s.mountpoint), "cannot be reached")
}

// TestDatabase: it is mounted in the background, with its URL in the mount table, and used without a mount.
func TestDatabase(t *testing.T) {
	table := postgrestest.Shared(t).NewTable(t)
	s := newStore(t, user{"self", os.Geteuid()})
	const prefix = "/home/me/sessions/"
	text := readFile(t, s.source+"/"+sessionPath)
	table.Write(t, prefix+strings.TrimPrefix(sessionPath, "sessions/"), string(text))
	source := table.Source("")
	r := s.run("ls", "-s", source, "sessions")
	require.Equal(t, exitOK, r.code, r.stderr)
	require.Equal(t, 1, strings.Count(r.stdout, "\n"))
	// Of several people, each has a place of his own, which the first import makes.
	other := table.Source("&prefix=/home/you/.omp/agent/sessions/")
	requireStatus(t, exitSource, s.run("ls", "-s", other, "sessions"), "there are: "+prefix)
	r = s.run("import", "-s", other, s.source)
	require.Equal(t, exitOK, r.code, r.stderr)
	r = s.run("import", "-s", source, s.source)
	require.Equal(t, exitOK, r.code, r.stdout+r.stderr)
	require.Regexp(t, `(?s)same    sessions/(me|you)/.*0 new, 0 longer, 1 same`, r.stdout)
	require.Equal(t, "me\nyou\n", s.run("ls", "-s", source, "sessions").stdout)
	bundle := s.run("bundle", "-s", source, strings.Replace(strings.TrimSuffix(sessionPath, ".jsonl"), "sessions/", "sessions/you/", 1))
	require.Contains(t, bundle.stdout, sessionPath, bundle.stderr)
	require.NotContains(t, bundle.stdout, "sessions/you/")
	table.Do(t, `UPDATE `+table.Name+` SET content = content || $1 WHERE starts_with(path, '/home/you/')`,
		`{"type":"message","id":"dd","parentId":null,"timestamp":"2026-02-16T11:00:00.000Z",`+
			`"message":{"role":"assistant","content":[],"model":"m","provider":"p","usage":{"input":9,"output":5,"totalTokens":14},"timestamp":1}}`+"\n")
	const cost = `"input":9,"output":5,"cacheRead":0,"cacheWrite":0,"totalTokens":14`
	require.Regexp(t, `"who":"you",.*`+cost, s.run("stats", "-s", source, "--by", "who", "--json").stdout)
	require.Regexp(t, `"who":"you",.*`+cost, s.run("cat", "-s", source, "usage.jsonl").stdout)
	table.Do(t, `DELETE FROM `+table.Name+` WHERE starts_with(path, '/home/you/')`)
	t.Setenv("PGPASSWORD", "from-the-environment")
	requireFuse(t, s.user)
	r = s.run(source, s.mountpoint)
	require.Equal(t, exitOK, r.code, r.stderr)
	e, mounted := fs.MountAt(s.mountpoint)
	require.True(t, mounted)
	require.Equal(t, source, e.Source)
	shown := readFile(t, s.mountpoint+"/"+sessionPath)
	require.Equal(t, string(text), string(shown))
	r = s.run("-u", s.mountpoint)
	require.Equal(t, exitOK, r.code, r.stderr)
}

// TestSQLTrigger: what it prints can be run, and it takes no name that is none.
func TestSQLTrigger(t *testing.T) {
	table := postgrestest.Shared(t).NewTable(t)
	printed := func(source ...string) result { return typedLine("", append([]string{"sql-trigger"}, source...)...) }
	table.Script(t, printed(table.Source("")).ok(t).stdout)
	require.Contains(t, printed().stdout, `ON "omp_session_files"`)
	for source, want := range map[string]string{
		`postgres://h/d?table=x"%3B DROP TABLE y`: "table=",
		"postgres://h/d?table=a.b.c":              "table=",
		"postgres://me:secret@h/d":                "password",
		"/agent":                                  "URL of a database",
	} {
		r := printed(source)
		requireStatus(t, exitUsage, r, want)
		require.Empty(t, r.stdout)
		require.NotContains(t, r.stderr, "secret")
	}
	requireStatus(t, exitUsage, printed("a", "b"), "one argument is expected")
}

const (
	// teamHost is the machine and the database of docs/team.md.
	teamHost = "db.example/team"
	// psql carries out statements as the one who may make users.
	psql = "psql -q -v ON_ERROR_STOP=1 'postgres://tester@" + teamHost + "'"
)

// TestTeam types what docs/team.md has; the socket of a server stands for the host.
func TestTeam(t *testing.T) {
	if testing.Short() {
		t.Skip("its commands do the same for every user")
	}
	t.Parallel()
	const name = "docs/team.md"
	steps := readSteps(t, name, readProject(t, name))
	require.GreaterOrEqual(t, len(steps), 9)
	server := postgrestest.New(t)
	s := newReadmeStore(t)
	requireFuse(t, s.user)
	db := newTeam(t, server, s)
	require.NoError(t, os.Symlink(server.Program("psql"), filepath.Join(s.dir, "tools/psql")))

	end := len(steps)
	steps = append(steps,
		step{command: `ls ~/team-sessions/recent`},
		step{command: `sessionfs ls -s 'postgres://reader@db.example/team' recent`},
		step{command: `echo x | sessionfs write -s 'postgres://reader@db.example/team' recent/01-*/title`},
		step{command: `sha256sum ~/team-sessions/blobs/* | sed 's|  .*/|  |'`},
		step{command: `sessionfs -u ~/team-sessions`})
	host := "/team?host=" + filepath.Dir(server.Socket())
	for i := range steps {
		typed := strings.ReplaceAll(steps[i].command, teamHost+"?", host+"&")
		steps[i].command = strings.ReplaceAll(typed, teamHost, host)
	}
	results := s.typeInto([]string{"bash", "--norc", "--noediting", "-i"}, steps)
	for i, got := range results[:end] {
		checkStep(t, "bash", steps[i], got)
	}
	after := results[end:]
	require.Equal(t, 2*len(sessionsOf(t, s))+3, strings.Count(after[0].stdout, "\n"), "also the archived one, Claude's and Codex's: %s", after[0])
	require.Equal(t, after[0].stdout, after[1].stdout, "reader may read")
	require.NotZero(t, after[2].code, "and not write")
	require.Contains(t, after[2].stdout, "ermission denied")
	blobs := strings.Split(strings.TrimSpace(after[3].stdout), "\n")
	require.NotEmpty(t, blobs)
	for _, line := range blobs {
		sum, shown, _ := strings.Cut(line, "  ")
		require.Equal(t, sum, shown)
	}
	require.Zero(t, after[4].code, after[4])
	var trigger bool
	require.NoError(t, db.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_trigger WHERE tgname = 'sessionfs_changes')`).Scan(&trigger))
	require.True(t, trigger)
	s.requireUnmounted()
}

// newTeam makes the database, which is owned by the user me, with the sessions of the sample store.
func newTeam(t *testing.T, server *postgrestest.Server, s *store) *pgx.Conn {
	t.Helper()
	connect := func(url string) *pgx.Conn {
		c, err := pgx.Connect(t.Context(), url)
		require.NoError(t, err)
		return c
	}
	admin := connect(server.URL("postgres"))
	for _, statement := range []string{"CREATE ROLE me LOGIN", "CREATE DATABASE team OWNER me"} {
		_, err := admin.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
	require.NoError(t, admin.Close(t.Context()))
	c := connect(strings.Replace(server.URL("team"), "tester@", "me@", 1))
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	_, err := c.Exec(t.Context(), `CREATE TABLE omp_session_files`+postgrestest.Columns)
	require.NoError(t, err)
	for _, file := range sessionsOf(t, s) {
		text := readFile(t, file)
		path := strings.Replace(file, s.source, "/home/me/.omp/agent", 1)
		_, err = c.Exec(t.Context(), `INSERT INTO omp_session_files (path, content, mtime_ms) VALUES ($1, $2, 0)`, path, string(text))
		require.NoError(t, err)
	}
	return c
}

// sessionsOf returns the session files of a store.
func sessionsOf(t *testing.T, s *store) []string {
	t.Helper()
	files := glob(t, filepath.Join(s.source, "sessions/*/*.jsonl"))
	require.NotEmpty(t, files)
	return files
}

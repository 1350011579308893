//go:build linux

package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage/postgres/postgrestest"
)

// TestDatabasePassword: one on the command line is refused before anything is started, and never said again.
func TestDatabasePassword(t *testing.T) {
	s := newStore(t, user{"self", os.Geteuid()})
	const secret = "s3cr3t"
	for _, source := range []string{"postgres://me:" + secret + "@h/d", "postgresql://me@h/d?password=" + secret} {
		for _, args := range [][]string{{source, s.mountpoint}, {"-f", source, s.mountpoint}, {"ls", "-s", source}} {
			r := s.run(args...)
			requireStatus(t, exitUsage, r, "~/.pgpass")
			require.NotContains(t, r.stdout+r.stderr, secret)
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
	text, err := os.ReadFile(s.source + "/" + sessionPath)
	require.NoError(t, err)
	table.Write(t, prefix+strings.TrimPrefix(sessionPath, "sessions/"), string(text))
	source := table.Source("")
	r := s.run("ls", "-s", source, "sessions")
	require.Equal(t, exitOK, r.code, r.stderr)
	require.Equal(t, 1, strings.Count(r.stdout, "\n"))
	t.Setenv("PGPASSWORD", "from-the-environment")
	requireFuse(t, s.user)
	r = s.run(source, s.mountpoint)
	require.Equal(t, exitOK, r.code, r.stderr)
	e, mounted := mountAt(s.mountpoint)
	require.True(t, mounted)
	require.Equal(t, source, e.source)
	shown, err := os.ReadFile(s.mountpoint + "/" + sessionPath)
	require.NoError(t, err)
	require.Equal(t, string(text), string(shown))
	r = s.run("-u", s.mountpoint)
	require.Equal(t, exitOK, r.code, r.stderr)
}

// TestSQLTrigger: what it prints can be run, twice too, and it takes no name that is none.
func TestSQLTrigger(t *testing.T) {
	table := postgrestest.Shared(t).NewTable(t)
	print := func(source ...string) result {
		var stdout, stderr bytes.Buffer
		code := run(append([]string{"sessionfs", "sql-trigger"}, source...), streams{strings.NewReader(""), &stdout, &stderr})
		return result{code, stdout.String(), stderr.String()}
	}
	for range 2 {
		r := print(table.Source(""))
		require.Zero(t, r.code, r.stderr)
		table.Do(t, r.stdout)
	}
	var on string
	require.NoError(t, table.QueryRow(t.Context(), `SELECT tgrelid::regclass FROM pg_trigger WHERE tgrelid = $1::text::regclass AND tgname = 'sessionfs'`, table.Name).Scan(&on))
	require.Equal(t, table.Name, on)
	require.Contains(t, print().stdout, `ON "omp_session_files"`)
	for source, want := range map[string]string{
		`postgres://h/d?table=x"%3B DROP TABLE y`: "table=", "postgres://h/d?table=a.b.c": "table=", "postgres://me:secret@h/d": "password", "/agent": "URL of a database",
	} {
		r := print(source)
		requireStatus(t, exitUsage, r, want)
		require.Empty(t, r.stdout)
		require.NotContains(t, r.stderr, "secret")
	}
	requireStatus(t, exitUsage, print("a", "b"), "at most 1 arg")
}

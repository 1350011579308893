package postgres

import (
	"net/url"
	"strings"
	"testing"

	"sessionfs/sessioncore/storage"

	"github.com/stretchr/testify/require"
)

// TestParseSource: a URL names a table and a prefix beside the parameters of PostgreSQL's own tools.
func TestParseSource(t *testing.T) {
	t.Setenv("PGPASSWORD", "from-the-environment")
	for text, want := range map[string]TableSource{
		"postgres://me@db.example/team":                           {Table: "omp_session_files"},
		"postgresql://me@db.example:5433/team?sslmode=disable":    {Table: "omp_session_files"},
		"postgres://me@h/d?table=Sessions&prefix=/home/me/a%20b/": {Table: "sessions", Prefix: "/home/me/a b/", HasPrefix: true},
		"postgres://me@h/d?table=Team.files_2&prefix=":            {Table: "team.files_2", HasPrefix: true},
		"postgres:///d?host=/run/postgresql":                      {Table: "omp_session_files"},
	} {
		got, err := ParseSource(text)
		require.NoError(t, err, text)
		require.Equal(t, text, got.Shown)
		require.Equal(t, want, TableSource{Table: got.Table, Prefix: got.Prefix, HasPrefix: got.HasPrefix}, text)
		require.Equal(t, "from-the-environment", got.pool.ConnConfig.Password)
		require.Equal(t, `"`+strings.ReplaceAll(want.Table, ".", `"."`)+`"`, got.table)
		require.NotContains(t, got.pool.ConnConfig.RuntimeParams, "table")
		require.NotContains(t, got.pool.ConnConfig.RuntimeParams, "prefix")
	}
}

// TestParseSourceErrors: what is refused is refused without a password in the reason.
func TestParseSourceErrors(t *testing.T) {
	const secret = "s3cr3t"
	for _, text := range []string{
		"postgres://me:" + secret + "@h/d", "postgres://me:@h/d", "postgres://:" + secret + "@h/d",
		"postgres://me@h/d?password=" + secret, "postgres://me@h/d?sslpassword=" + secret, "postgres://me@h/d?pass%77ord=" + secret,
	} {
		_, err := ParseSource(text)
		require.ErrorIs(t, err, ErrPassword, text)
		require.NotContains(t, err.Error(), secret)
	}
	for _, text := range []string{
		"postgres://me:" + secret + "@h:port/d", "postgres://me:" + secret + "%zz@h/d", "mysql://me@h/d", "postgres:", "/dir",
		"postgres://me@h/d?a;b=" + secret, "postgres://me@h/d?sslmode=" + "never",
	} {
		_, err := ParseSource(text)
		require.Error(t, err, text)
		require.NotContains(t, err.Error(), secret)
	}
	for _, table := range []string{
		"", "a b", `x"; DROP TABLE t; --`, "a.b.c", ".a", "a.", "1a", "a-b", "tä", "a'b", "a\x00b", "a\nb", "(SELECT 1)", strings.Repeat("a", 64),
		"pg_catalog.pg_authid;",
	} {
		_, err := ParseSource("postgres://me@h/d?" + "table=" + url.QueryEscape(table))
		require.ErrorContains(t, err, "table=", table)
	}
}

// TestPeopleNames: each person has a name of their own, and no other person gets it later.
func TestPeopleNames(t *testing.T) {
	const (
		ann  = "/home/ann/.omp/agent/sessions/"
		mac  = "/Users/ann/.omp/agent/sessions/"
		data = "/home/ann/.local/share/omp/sessions/"
		bob  = "/srv/bob/sessions/"
		root = "/root/.omp/agent/sessions/"
	)
	// assigned returns the names by prefix, after batches of prefixes were seen.
	assigned := func(batches ...[]string) map[string]string {
		p := &people{nameOf: map[string]string{}, prefixOf: map[string]string{}}
		for _, batch := range batches {
			p.assignNames(batch...)
		}
		for prefix, name := range p.nameOf {
			require.NoError(t, storage.CheckName(name))
			require.Equal(t, prefix, p.prefixOf[name])
			require.Equal(t, name+"/p/x", p.name(prefix+"p/x", false))
			require.Equal(t, prefix+"p/x", p.path(name+"/p/x"))
		}
		return p.nameOf
	}
	require.Equal(t, map[string]string{ann: "ann", bob: "bob", root: "root"}, assigned([]string{ann, bob, root}))
	both := map[string]string{ann: "ann@home", mac: "ann@Users"}
	require.Equal(t, both, assigned([]string{ann, mac}))
	require.Equal(t, both, assigned([]string{mac, ann}))
	require.Equal(t, map[string]string{ann: "ann", mac: "ann@Users"}, assigned([]string{ann}, []string{mac}), "a person who comes later")
	three := assigned([]string{ann, mac, data})
	require.Equal(t, "ann@Users", three[mac])
	require.Regexp(t, `^ann@[0-9a-f]{8}$`, three[ann])
	require.NotEqual(t, three[ann], three[data])
	require.Len(t, assigned([]string{"/sessions/", "/.hidden/sessions/", "/./sessions/"}), 3)
}

package mountopts

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCheckSource: a URL of a database is accepted without a password, and refused with one or in another form, in
// words that do not repeat the password.
func TestCheckSource(t *testing.T) {
	for _, o := range []Options{
		{Source: "./postgres://me:secret@h/d"}, // a directory
		{Source: "postgres://me@h/d?table=t&prefix=/p/", Blobs: "/blobs", ReadOnly: true},
		{Source: "postgresql:///d?host=/run/postgresql"},
		{Source: "POSTGRES://me@h/d"},
		{Source: "PostgreSQL://me@h/d"},
		{Source: "host"},
		{Source: "/a/host=x"},
		{Source: "c:x"},
	} {
		require.NoError(t, o.CheckSource(), o.Source)
	}
	for want, o := range map[string]Options{
		"blobs=":         {Source: "/agent", Blobs: "/blobs"},
		"~/.pgpass":      {Source: "postgres://me:secret@h/d"},
		"PGPASSWORD":     {Source: "postgres://me@h/d?password=secret"},
		"a service file": {Source: "postgres://me@h/d?x=1&sslpassword=secret"},
		"but is none":    {Source: "postgres://me:secret@h:port/d"},
		"it out, and":    {Source: "POSTGRES://me:secret@h/d"},
		"SOURCE begins":  {Source: "postgres://me:12#secret@h/d"},
		"HOST/DATABASE":  {Source: "postgres:me:secret@h/d"},
		"be mounted":     {Source: "jdbc:postgresql://me:secret@h/d"},
		"keywords":       {Source: "host=h password=secret dbname=d"},
		"service=":       {Source: "dbname = d password = 'se secret'"},
	} {
		require.True(t, o.Blobs != "" || IsDatabase(o.Source), o.Source)
		err := o.CheckSource()
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "secret")
	}
	_, err := Parse([]string{"sessionfs", "postgres://me:secret@h/d", "/mnt"})
	require.ErrorContains(t, err, "password")
	for _, args := range [][]string{{"/agent", "postgres://me:secret@h/d"}, {"-u", "postgres://me:secret@h/d"}, {"POSTGRES://me:secret@h/d"}} {
		_, err := Parse(append([]string{"sessionfs"}, args...))
		require.ErrorIs(t, err, errDatabaseLast)
	}
}

// TestWithoutPassword: passwords of URLs and of keywords are masked, and nothing else.
func TestWithoutPassword(t *testing.T) {
	for text, want := range map[string]string{
		"no postgres:/me:secret@h/d there":         "no postgres:/me:…h/d there",
		"PostgreSQL://:secret@h":                   "PostgreSQL://:…h",
		"host=h password=secret dbname=d":          "host=h password=… dbname=d",
		"password = 'a secret' user=b":             "password = … user=b",
		"postgres://me@h/d?sslpassword=secret&a=b": "postgres://me@h/d?sslpassword=…&a=b",
		"postgres://me@h:5/d?prefix=/a@b":          "postgres://me@h:5/d?prefix=/a@b",
	} {
		require.Equal(t, want, WithoutPassword(text))
	}
}

package mountopts

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckSource(t *testing.T) {
	for _, o := range []Options{
		{Source: "./postgres://me:secret@h/d"}, // a directory
		{Source: "postgres://me@h/d?table=t&prefix=/p/", Blobs: "/blobs", ReadOnly: true},
		{Source: "postgresql:///d?host=/run/postgresql"},
	} {
		require.NoError(t, o.CheckSource(), o.Source)
	}
	for want, o := range map[string]Options{
		"blobs=":         {Source: "/agent", Blobs: "/blobs"},
		"~/.pgpass":      {Source: "postgres://me:secret@h/d"},
		"PGPASSWORD":     {Source: "postgres://me@h/d?password=secret"},
		"a service file": {Source: "postgres://me@h/d?x=1&sslpassword=secret"},
		"but is none":    {Source: "postgres://me:secret@h:port/d"},
	} {
		err := o.CheckSource()
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "secret")
	}
	_, err := Parse([]string{"sessionfs", "postgres://me:secret@h/d", "/mnt"})
	require.ErrorContains(t, err, "password")
}

package clients

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLeaseSocket: names of sockets that the client was observed to bind.
func TestLeaseSocket(t *testing.T) {
	for path, want := range map[string]string{
		"":                        "dd4458733774f8b02ff557a2e70c6e06",
		"/tmp/config.yml.lock":    "71327ba360366b2a3eb5de2fa0093fa0",
		"/tmp/test.lock":          "c0b11536af4af31f2f1b828aaf87ec00",
		"/tmp/日本/config.yml.lock": "8e86d6a4347e8cc9794efc489b074c6b",
	} {
		require.Equal(t, "@omp-file-lock-"+want, LeaseSocket(path), path)
	}
}

func TestLeaseDirs(t *testing.T) {
	const owners = "/run/session-owners"
	for _, test := range []struct {
		env     map[string]string
		sources []string
		want    []string
	}{
		{nil, []string{"/home/dev/.omp/agent", "/disk/agent"}, []string{"/home/dev/.omp" + owners, "/disk" + owners}},
		{nil, []string{"/srv/sessions"}, nil},
		{map[string]string{"HOME": "/home/dev"}, []string{"/home/dev/.omp/agent"}, []string{"/home/dev/.omp" + owners}},
		{map[string]string{"HOME": "/home/dev", "PI_CONFIG_DIR": ".xcsh"}, []string{"/srv/store"}, []string{"/home/dev/.xcsh" + owners}},
		{map[string]string{"HOME": "/h", "XDG_STATE_HOME": "/h/.local/state"}, nil, []string{"/h/.omp" + owners, "/h/.local/state/omp" + owners}},
	} {
		require.Equal(t, test.want, LeaseDirs(func(name string) string { return test.env[name] }, test.sources...))
	}
}

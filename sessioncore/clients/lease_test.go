package clients

import (
	"testing"

	"github.com/stretchr/testify/require"
)

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

func TestAgentDirs(t *testing.T) {
	for _, test := range []struct {
		env   map[string]string
		given []string
		want  []string
	}{
		{nil, []string{"/disk/agent", "", "/disk/agent/"}, []string{"/disk/agent"}},
		{map[string]string{"HOME": "/h"}, []string{"/disk/agent"}, []string{"/disk/agent", "/h/.omp/agent"}},
		{map[string]string{"HOME": "/h", "PI_CONFIG_DIR": ".xcsh"}, []string{"/h/.xcsh/agent"}, []string{"/h/.xcsh/agent"}},
		{map[string]string{"PI_CODING_AGENT_DIR": "/a", "XDG_DATA_HOME": "/h/.local/share"}, nil, []string{"/a", "/h/.local/share/omp"}},
	} {
		require.Equal(t, test.want, AgentDirs(func(name string) string { return test.env[name] }, test.given...))
	}
}

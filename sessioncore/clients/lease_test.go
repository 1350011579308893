package clients

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLeaseDirs: leases lie beside agent directories, and where clients of our environment put them.
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

// TestAgentDirs: agent directories are the given ones and those of our environment, each once.
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

// TestScopes: the names that clients 14.9.9, 18.2.3 and 18.3.4 give to directories of sessions, and those that they change.
func TestScopes(t *testing.T) {
	dir := t.TempDir()
	home := filepath.Join(dir, "home")
	require.NoError(t, os.MkdirAll(filepath.Join(home, "w", "deep"), 0o700))
	require.NoError(t, os.Symlink(home, filepath.Join(dir, "link")))
	tmp := filepath.Join(dir, "tmp")
	require.NoError(t, os.Mkdir(tmp, 0o700))
	for _, s := range []Scopes{scopesIn(home, tmp), scopesIn(filepath.Join(dir, "link"), tmp+"/")} {
		for cwd, want := range map[string]string{
			home:                            "-",
			home + "/w":                     "-w",
			home + "/w/deep":                "-w-deep",
			home + `/a:b\c/not yet`:         "-a-b-c-not yet",
			filepath.Join(dir, "link", "w"): "-w",
			home + "/.dotfiles/x":           "-.dotfiles-x",
			tmp:                             "-tmp",
			tmp + "/.x":                     "-tmp-.x",
			tmp + "/w/x":                    "-tmp-w-x",
			"/srv/w":                        "--srv-w--",
			`C:\Users\ada\pier`:             "--C--Users-ada-pier--",
			"c:/Users/ada":                  "--c--Users-ada--",
			`D:\`:                           "--D----",
			`\\server\share`:                "---server-share--",
			"/":                             "----",
			home + "-other":                 AbsoluteScope(home + "-other"),
		} {
			require.Equal(t, want, s.Name(cwd), cwd)
		}
	}
	s := scopesIn(home, tmp)
	for _, cwd := range []string{home, home + "/w", tmp + "/w"} {
		require.True(t, s.Passing(AbsoluteScope(cwd), cwd), cwd)
		require.False(t, s.Passing(s.Name(cwd), cwd), cwd)
	}
	require.True(t, s.Passing(AbsoluteScope(home+"-other"), home+"-other"), "its name begins with that of the home directory")
	require.False(t, s.Passing("--srv-w--", "/srv/w"))
	require.False(t, s.Passing("my sessions", "/srv/w"))
	require.Equal(t, "--home-dev-a-b-c--", AbsoluteScope(`/home/dev/a:b\c`))
	require.Equal(t, AbsoluteScope("/root/w"), scopesIn("", tmp).Name("/root/w"))
}

package clients

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

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

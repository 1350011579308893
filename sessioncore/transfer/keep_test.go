//go:build linux

package transfer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/storage/dir"
)

// TestKeepSwapped: between the listing of a directory and the open of a file, a link, a pipe or a directory may get into the place
// of the file or of its directory. None of them is followed, copied or waited for.
func TestKeepSwapped(t *testing.T) {
	top := t.TempDir()
	kept := t.TempDir()
	put(t, top, map[string]string{"secret/a.jsonl": "secret", "projects/-p/real.jsonl": "real", "projects/-p/d/x": ""})
	projects := filepath.Join(top, "projects")
	require.NoError(t, os.Symlink("../../secret/a.jsonl", filepath.Join(projects, "-p/link.jsonl")))
	require.NoError(t, os.Symlink("../secret", filepath.Join(projects, "linked")))
	require.NoError(t, unix.Mkfifo(filepath.Join(projects, "-p/pipe.jsonl"), 0o600))
	disk, err := dir.Open(projects)
	require.NoError(t, err)
	k := keeper{Kept: Kept{Dir: kept}, agent: agents.Find("claude"), parts: filepath.Join(kept, ".parts")}
	require.NoError(t, k.begin(top, kept))
	for _, name := range []string{"-p/link.jsonl", "linked/a.jsonl", "-p/pipe.jsonl", "-p/d", "-p/none", "-p/real.jsonl"} {
		file := keptFile{disk: disk, name: name, to: filepath.Join(kept, name), isSession: true}
		require.NoError(t, k.keep(t.Context(), file), name)
	}
	require.Equal(t, 1, k.Copied)
	require.Equal(t, map[string]string{FromName: top + "\n", "-p/real.jsonl": "real"}, all(t, kept))
}

// TestKeptByOthers: in a shared directory, other users may have made the files that keep reads there. Only a small regular file counts
// as .from, and another one is replaced. A link is not followed, and a pipe is not waited for.
func TestKeptByOthers(t *testing.T) {
	agent := agents.Find("claude")
	for name, leave := range map[string]func(at string) error{
		"pipe":  func(at string) error { return unix.Mkfifo(at, 0o600) },
		"zero":  func(at string) error { return os.Symlink("/dev/zero", at) },
		"link":  func(at string) error { return os.Symlink("../other", at) },
		"large": func(at string) error { return os.WriteFile(at, []byte("/"+strings.Repeat("x", maxFrom)), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			home, kept := t.TempDir(), t.TempDir()
			put(t, home, map[string]string{"projects/-p/a.jsonl": "a"})
			put(t, kept, map[string]string{"other": "/elsewhere\n", "claude/projects/-p/x": ""})
			at := filepath.Join(kept, "claude", FromName)
			require.NoError(t, leave(at))
			require.False(t, HasKept(filepath.Dir(at)))
			require.Equal(t, filepath.Dir(at), KeptIn(kept, agent.Name, home))
			k, err := Keep(t.Context(), home, agent, kept)
			require.NoError(t, err)
			require.Equal(t, 1, k.Copied)
			text, err := os.ReadFile(at)
			require.NoError(t, err)
			require.Equal(t, home+"\n", string(text))
			require.True(t, HasKept(filepath.Dir(at)))
			elsewhere, err := os.ReadFile(filepath.Join(kept, "other"))
			require.NoError(t, err)
			require.Equal(t, "/elsewhere\n", string(elsewhere))
		})
	}
	home, kept := t.TempDir(), t.TempDir()
	put(t, home, map[string]string{"projects/-p/a.jsonl": "a"})
	put(t, kept, map[string]string{"claude/projects/-p/x": ""})
	require.NoError(t, os.Symlink(filepath.Join(home, "made"), filepath.Join(kept, "claude/.lock")))
	_, err := Keep(t.Context(), home, agent, kept)
	require.Error(t, err)
	require.NoFileExists(t, filepath.Join(home, "made"))
	require.NoError(t, os.Remove(filepath.Join(kept, "claude/.lock")))
	require.NoError(t, unix.Mkfifo(filepath.Join(kept, "claude/projects/-p/a.jsonl"), 0o600))
	k, err := Keep(t.Context(), home, agent, kept)
	require.NoError(t, err)
	require.Equal(t, 1, k.Beside)
}

package fs_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func containsAny(text string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}

// refusedOpen is what opening a file for writing fails with that has no write bits: the kernel refuses it by the
// mode, but to root.
func refusedOpen() syscall.Errno {
	if os.Geteuid() != 0 {
		return syscall.EACCES
	}
	return syscall.EPERM
}

// copies are the ways in which people copy to, move about in and tidy up a directory; $1 is a directory of the mount, $2 one
// elsewhere with a session file and the directory beside it, and $3 something that is in $1.
var copies = map[string]string{
	"cp":                `cp "$2"/x.jsonl "$1"`,
	"cp -a":             `cp -a "$2"/. "$1"`,
	"rsync":             `rsync -a "$2/" "$1/"`,
	"rsync in place":    `rsync -a --inplace "$2/" "$1/"`,
	"tar":               `tar c -C "$2" . | tar xp -C "$1"`,
	"mv in":             `mv "$2"/x.jsonl "$1"`,
	"mv of a directory": `mv "$2"/x "$1"`,
	"part":              `cp "$2"/x.jsonl "$1/x.jsonl.part" && mv "$1/x.jsonl.part" "$1/x.jsonl"`,
	"mkdir":             `mkdir "$1/2026-03-30T07-12-41-318Z_x"`,
	"mkdir -p":          `mkdir -p "$1/a/b"`,
	"rm":                `rm -f "$1/$3"; [ ! -e "$1/$3" ]`,
	"rmdir":             `rmdir "$1/$3"`,
	"mv":                `mv "$1/$3" "$1/$3.old"`,
	"mv away":           `mv -T "$1/$3" "$2/moved"`,
	"chmod":             `chmod 701 "$1/$3"`,
	"chmod .":           `chmod 701 "$1"`,
	"touch":             `touch -d 2001-01-01 "$1/$3"`,
	"touch new":         `touch "$1/new.jsonl"`,
	"write":             `echo x > "$1/$3"`,
	"read and write":    `: <> "$1/$3"`,
	"append":            `echo x >> "$1/$3"`,
	"truncate":          `truncate -s 0 "$1/$3"`,
	"link":              `ln "$1/$3" "$1/hard"`,
	"symbolic link":     `ln -s x "$1/$3.s" && [ ! -e "$1/leaf" ]`, // beside leaf it may become leaf
}

// TestNothingIsCopiedIn: programs that copy, move, write and tidy up fail in every directory, with -o ro and without; nothing on
// disk changes, and last-error and the log say why, and what to do instead.
func TestNothingIsCopiedIn(t *testing.T) {
	t.Parallel()
	onceIsEnough(t)
	const session = "sessions/--home-dev-tidetable--/2026-03-30T07-12-41-318Z_019d3d96-6b66-7996-8ead-42aae5653abc"
	source := demo(t)
	m := mountForTest(t, source)
	readOnly := mountForTest(t, source, func(c *mountConfig) { c.options.ReadOnly = true })
	before := treeSum(t, source)
	for name, there := range map[string]string{
		"sessions": "--home-dev-tidetable--", filepath.Dir(session): filepath.Base(session) + ".jsonl", session: "header.json", session + "/entries": names(t, m.path(session, "entries"))[0],
		session + "/artifacts": "0.bash.log", "archive": "index.jsonl", "blobs": names(t, m.path("blobs"))[0], "terminal-sessions": "pts-3",
	} {
		_, err := os.Lstat(m.path(name, there))
		require.NoError(t, err)
		for how, script := range copies {
			for _, m := range []*mount{m, readOnly} {
				from := t.TempDir()
				require.NoError(t, os.WriteFile(filepath.Join(from, "x.jsonl"), []byte(header("x")+entry(1, entryID(1), "", "hello")), 0o644))
				require.NoError(t, os.MkdirAll(filepath.Join(from, "x", "local"), 0o755))
				_, problem, err := tool(t, "bash", "-c", script, "bash", m.path(name), from, there)
				require.Error(t, err, "%s in %s (%s)", how, name, there)
				require.NotContains(t, problem, "command not found")
				words := []string{"Read-only file system", "Is a directory", "Not a directory", "not allowed for directory"}
				if m != readOnly {
					words = append(words, "Operation not permitted", "Permission denied")
				}
				require.True(t, containsAny(problem, words...) || how == "symbolic link" && name == session, "%s in %s: %s", how, name, problem)
			}
		}
		require.Equal(t, before, treeSum(t, source), name)
	}
	require.Contains(t, m.logged(), "cannot be changed through the mount")
	for _, op := range []string{"unlink", "rename", "mkdir", "symlink", "create", "setattr"} {
		require.Contains(t, m.logged(), "op="+op+" ")
	}
	for name, want := range map[string]error{
		"sessions/x.jsonl": syscall.EPERM, filepath.Dir(session) + "/x.jsonl": syscall.EPERM, session + "/x.txt": syscall.EPERM,
		"blobs/x": syscall.EPERM, "terminal-sessions/x": syscall.EPERM, "archive/x.jsonl.gz": syscall.EROFS,
	} {
		require.ErrorIs(t, os.WriteFile(m.path(name), nil, 0o600), want, name)
		reason := m.path("last-error")
		if strings.HasPrefix(name, session) {
			reason = m.path(session, "last-error")
		}
		require.Contains(t, run(t, "cat", reason), "sessionfs import", name)
	}
}

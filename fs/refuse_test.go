package fs_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// writes are the ways to change something; $1 is a path in the mount, $2 a file elsewhere.
var writes = map[string]string{
	"touch":       `touch "$1"`,
	"echo >":      `echo x > "$1"`,
	"echo >>":     `echo x >> "$1"`,
	"rm":          `rm -f "$1"`, // rm -r of a session would come to leaf, whose removal means something
	"rmdir":       `rmdir "$1"`,
	"mv away":     `mv "$1" "$2.moved"`,
	"mv in":       `cp "$2" "$2.copy"; mv "$2.copy" "$1"`,
	"mv over":     `mv -T "$1" "$1.other"`,
	"mkdir":       `mkdir "${1%/}.new"`,
	"mkdir in":    `[ -d "$1" ] || exit 1; mkdir "$1/new"`,
	"create":      `: > "${1%/}.new"`,
	"mknod":       `mkfifo "${1%/}.pipe"`,
	"ln":          `ln "$1" "$1.link"`,
	"ln -s":       `[ -e "${1%/*}/leaf" ] && exit 1; ln -s x "${1%/}.symlink"`, // beside leaf it may become leaf
	"ln -sfn":     `[ -L "$1" ] || exit 1; ln -sfn entries/x.json "$1"`,
	"truncate":    `truncate -s 0 "$1"`,
	"truncate up": `truncate -s 9999 "$1"`,
	"chmod":       `chmod 777 "$1"`,
	"chown":       `chown 1:1 "$1"`,
	"cp in":       `cp -f "$2" "$1"`,
	"dd":          `dd if="$2" of="$1" conv=notrunc status=none`,
	"rsync":       `[ -f "$1" ] || exit 23; rsync --inplace "$2" "$1"`,
	"sed -i":      `sed -i s/a/b/ "$1"`,
	"setfattr":    `setfattr -n user.x -v y "$1"`,
}

// TestRefusals: what is no control file and not leaf cannot be changed through the mount; nothing on disk
// changes, and the log has the reason.
func TestRefusals(t *testing.T) {
	const session = "sessions/-tmp-gauge-csv/2026-04-14T18-03-22-904Z_019d8d29-8998-7a55-b05b-babff0f94a58"
	const blob = "blobs/d5e9708f929211b07a346e9be72de4357afb42e14b5ee48d84adb432e0622e74"
	for name, readOnly := range map[string]bool{"rw": false, "ro": true} {
		t.Run(name, func(t *testing.T) {
			a := demo(t)
			before := treeSum(t, a)
			m := mountForTest(t, a, func(c *mountConfig) { c.options.ReadOnly = readOnly })
			entry := session + "/entries/" + names(t, m.path(session, "entries"))[0]
			root := session + "/tree/" + names(t, m.path(session, "tree"))[1]
			other := t.TempDir() + "/other"
			require.NoError(t, os.WriteFile(other, []byte("other\n"), 0o644))
			for _, path := range []string{
				session + ".jsonl", session, session + "/header.json", session + "/context.json", session + "/problems.jsonl", entry,
				session + "/entries", session + "/tree", root, root + "/entry.json", blob, "blobs", "sessions", "terminal-sessions/pts-3", ".",
			} {
				for how, script := range writes {
					if readOnly {
						break // the kernel refuses all of it; the errnos below show it
					}
					_, problem, err := tool(t, "bash", "-c", script, "bash", m.path()+"/"+path, other)
					require.Error(t, err, "%s %s", how, path)
					allowed := []string{"Operation not permitted", "Is a directory", "Permission denied", "not supported", "refusing to remove", "Not a directory", "busy", "Read-only file system", "File exists", "hard link not allowed", "not a regular file", "not overwriting", "cannot overwrite", "No such file", "omitting", "Invalid argument", "cross-device", "not found", "same file"}
					require.True(t, problem == "" || containsAny(problem, allowed...), "%s %s: %s", how, path, problem)
				}
			}
			m.refuses(t, session+".jsonl", readOnly)
			m.refuses(t, session+"/context.json", readOnly)
			m.refuses(t, entry, readOnly)
			m.refuses(t, blob, readOnly)
			require.Equal(t, before, treeSum(t, a), "on disk nothing changes")
			if !readOnly {
				require.Contains(t, m.logged(), "cannot be changed through the mount")
				for _, op := range []string{"open", "unlink", "rename", "mkdir", "symlink", "create", "setattr", "mknod", "rmdir"} {
					if op == "open" && os.Geteuid() != 0 {
						continue // the kernel looked at the mode
					}
					require.Contains(t, m.logged(), "op="+op+" ")
				}
			}
		})
	}
}

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

// refuses checks the errnos themselves on a file.
func (m *mount) refuses(t *testing.T, path string, readOnly bool) {
	t.Helper()
	want := syscall.EPERM
	if readOnly {
		want = syscall.EROFS
	}
	asked := want
	if !readOnly {
		asked = refusedOpen()
	}
	file := m.path(path)
	for flag, name := range map[int]string{os.O_WRONLY: "write", os.O_RDWR: "read and write", os.O_WRONLY | os.O_APPEND: "append", os.O_RDWR | os.O_TRUNC: "truncate"} {
		f, err := os.OpenFile(file, flag, 0)
		if err == nil {
			_ = f.Close()
		}
		require.ErrorIs(t, err, asked, "open %s to %s", path, name)
	}
	require.ErrorIs(t, os.Remove(file), want, "remove %s", path)
	require.ErrorIs(t, os.Rename(file, file+"x"), want, "rename %s", path)
	require.ErrorIs(t, os.Truncate(file, 0), asked, "truncate %s", path)
	require.ErrorIs(t, os.Chmod(file, 0o600), want, "chmod %s", path)
	require.ErrorIs(t, os.Mkdir(file+".d", 0o700), want, "mkdir beside %s", path)
	if _, err := os.Lstat(filepath.Join(filepath.Dir(file), "leaf")); err != nil || readOnly { // beside leaf it may become leaf
		require.ErrorIs(t, os.Symlink("x", file+".s"), want, "symlink beside %s", path)
	}
	require.ErrorIs(t, os.WriteFile(file+".new", nil, 0o600), want, "create beside %s", path)
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
}

// TestNothingIsCopiedIn: programs that copy, move and tidy up fail in every directory of SOURCE, nothing on disk changes, and
// last-error says what to do instead.
func TestNothingIsCopiedIn(t *testing.T) {
	t.Parallel()
	onceIsEnough(t)
	const session = "sessions/--home-dev-tidetable--/2026-03-30T07-12-41-318Z_019d3d96-6b66-7996-8ead-42aae5653abc"
	source := demo(t)
	m := mountForTest(t, source)
	for name, there := range map[string]string{
		"sessions": "--home-dev-tidetable--", filepath.Dir(session): filepath.Base(session) + ".jsonl", session: "header.json",
		session + "/artifacts": "0.bash.log", "archive": "index.jsonl", "blobs": names(t, m.path("blobs"))[0], "terminal-sessions": "pts-3",
	} {
		_, err := os.Lstat(m.path(name, there))
		require.NoError(t, err)
		for how, script := range copies {
			from := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(from, "x.jsonl"), []byte(header("x")+entry(1, entryID(1), "", "hello")), 0o644))
			require.NoError(t, os.MkdirAll(filepath.Join(from, "x", "local"), 0o755))
			before := treeSum(t, source)
			_, problem, err := tool(t, "bash", "-c", script, "bash", m.path(name), from, there)
			require.Error(t, err, "%s in %s (%s)", how, name, there)
			require.NotContains(t, problem, "command not found")
			require.Equal(t, before, treeSum(t, source), "%s in %s", how, name)
		}
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

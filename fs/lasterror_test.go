package fs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLastError: it says when, which line, why, and how many took effect before it, until a write
// succeeds.
func TestLastError(t *testing.T) {
	const when = `^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z `
	w := newWriting(t)
	for script, want := range map[string]string{
		`cat "$2" > "$1"`: `append: line 4: .*message\.role.* \(2 applied\) \(invalid argument\)\n$`,
		`cat "$2" "$2" | sponge | tee "$1" >/dev/null`: `append: line 4: .* \(2 applied\)`,
		`dd if="$2" of="$1" bs=50 status=none`:         `append: line 4: .* \(2 applied\)`,
		`echo '{' > "$1"`:                              `append: line 1: .* \(0 applied\)`,
		`printf 'x\n\n\033[2J' > "$1"`:                 `append: line 1: .* \(0 applied\)`,
	} {
		lines := tempFile(t, message("1")+"\n\n"+message("2")+"\n"+badLine+"\n"+message("5")+"\n")
		before := w.raw("s")
		_, _, err := tool(t, "dash", "-c", script, "dash", w.in("append"), lines)
		require.Error(t, err, script)
		require.Contains(t, want, fmt.Sprintf(`(%d applied\)`, len(w.added(before))), script)
		require.Regexp(t, when+want, w.read("last-error"), script)
		require.NotRegexp(t, `[\x00-\x09\x0b-\x1f]`, w.read("last-error"))
		info, err := os.Stat(w.in("last-error"))
		require.NoError(t, err)
		require.EqualValues(t, len(w.read("last-error")), info.Size())
		require.NoError(t, put(w.in("labels"), "e1 "+strings.Trim(filepath.Base(lines), "/")+"\n"))
		require.Empty(t, w.read("last-error"))
	}
	require.ErrorIs(t, put(w.in("append"), "[]\n"), syscall.EINVAL)
	require.NoError(t, os.Remove(w.in("leaf")))
	require.NoError(t, os.Symlink("entries/e1.json", w.in("leaf")))
	require.Empty(t, w.read("last-error"), "moving the leaf succeeded")
	require.Empty(t, run(t, "cat", w.m.path("last-error")))
}

// TestLastErrorOfTheRoot: what concerns no session is told in the root, until what failed there succeeds.
func TestLastErrorOfTheRoot(t *testing.T) {
	w := newWriting(t)
	tells := func(want string) {
		t.Helper()
		require.Regexp(t, want, run(t, "cat", w.m.path("last-error")))
	}
	gone := func(path string) {
		t.Helper()
		_, err := os.Lstat(w.m.path(path))
		require.ErrorIs(t, err, os.ErrNotExist)
	}
	tells(`^$`)
	require.ErrorIs(t, put(w.m.path("new-session"), "relative/path\n"), syscall.EINVAL)
	tells(`^20\S+Z new-session: line 1: .* \(0 applied\) \(invalid argument\)\n$`)
	require.Contains(t, w.m.logged(), "op=write path=new-session")
	require.FileExists(t, w.m.path("by-id/s"))
	tells(`new-session`) // another look-up says nothing about it
	ask(t, w.m.path("new-session"), "/home/dev/p")
	tells(`^$`)
	gone("by-id/nowhere")
	tells(`Z by-id/nowhere: .*no session's id or file name begins with it`)
	gone("by-id/.git")
	tells(`by-id/nowhere: `)
	require.FileExists(t, w.m.path("by-id/s"))
	tells(`^$`)
	w.crumb("tty1", "/w\n/gone/sessions/p/gone.jsonl\n")
	gone("continue/tty1")
	tells(`Z continue/tty1: .*gone\.jsonl`)
	require.ErrorIs(t, os.Remove(w.m.path("last-error")), syscall.EPERM)
	require.Empty(t, w.read("last-error"), "a session's tells of the session alone")
}

// TestScriptGoesOn: a script that goes on after a refused line ends with an error, and the session before the gap.
func TestScriptGoesOn(t *testing.T) {
	for name, script := range map[string]string{
		"a loop of bash":   `exec 3>> "$1"; while read -r line; do printf '%s\n' "$line" >&3; done < "$2"`,
		"a loop that asks": `exec 3>> "$1"; e=0; while read -r line; do printf '%s\n' "$line" >&3 || e=1; done < "$2"; exit $e`,
		"jq":               `jq --unbuffered -c . "$2" > "$1"`,
		"python": `python3 -c "import os, sys
f, bad = os.open(sys.argv[1], os.O_WRONLY), 0
for line in open(sys.argv[2], 'rb'):
    try: os.write(f, line)
    except OSError: bad = 1
sys.exit(bad)" "$1" "$2"`,
	} {
		w := newWriting(t)
		lines := tempFile(t, message("1")+"\n"+badLine+"\n"+message("3")+"\n"+message("4")+"\n")
		was := strings.Count(w.raw("s"), "\n")
		_, _, err := tool(t, "bash", "-c", script, "bash", w.in("append"), lines)
		require.Error(t, err, name) // bash: of its last line
		require.Regexp(t, `append: line 2: .* \(1 applied\) \(invalid argument\)`, w.read("last-error"), name)
		require.Equal(t, was+1, strings.Count(w.raw("s"), "\n"), "%s: nothing behind the gap", name)
		require.NoError(t, put(w.in("append"), message("5")+"\n"))
		require.Empty(t, w.read("last-error"))
	}
}

// TestEditorsFchmod: the mode that a control file has can be set, another one not, and last-error is about lines.
func TestEditorsFchmod(t *testing.T) {
	w := newWriting(t)
	require.ErrorIs(t, put(w.in("append"), "[]\n"), syscall.EINVAL)
	was := w.read("last-error")
	info, err := os.Stat(w.in("append"))
	require.NoError(t, err)
	require.NoError(t, os.Chmod(w.in("append"), info.Mode()))
	require.ErrorIs(t, os.Chmod(w.in("append"), 0o777), syscall.EPERM)
	require.Equal(t, was, w.read("last-error"))
}

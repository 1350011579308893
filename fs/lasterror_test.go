package fs_test

import (
	"fmt"
	"os"
	"os/exec"
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
		absent(t, w.m.path(path))
	}
	tells(`^$`)
	require.ErrorIs(t, put(w.m.path("new-session"), "relative/path\n"), syscall.EINVAL)
	tells(`^20\S+Z new-session: line 1: .* \(0 applied\) \(invalid argument\)\n$`)
	require.Contains(t, w.m.logged(), "op=write path=new-session")
	ask(t, w.m.path("new-session"), anywhere("/home/dev/p"))
	tells(`^$`)
	gone("by-id/nowhere")
	tells(`Z by-id/nowhere: .*no session's id or file name begins with it`)
	require.FileExists(t, w.m.path("by-id/s"))
	tells(`^$`)
	w.crumb("tty1", "/w\n/gone/sessions/p/gone.jsonl\n")
	gone("continue/tty1")
	tells(`Z continue/tty1: .*gone\.jsonl`)
	require.ErrorIs(t, os.Remove(w.m.path("last-error")), syscall.EPERM)
	require.Empty(t, w.read("last-error"), "a session's tells of the session alone")
}

// TestVim: last-error is about what vim wrote in a terminal, not about the files and the mode that it tries to make besides.
func TestVim(t *testing.T) {
	w := newWriting(t)
	vim := func(keys string) {
		_, _, _ = tool(t, "sh", "-c", `printf '%s' "$1" | TERM=xterm script -qec "vim -u NONE -i NONE --cmd 'set directory=.,$2' '$3'" /dev/null`,
			"sh", keys, t.TempDir(), w.in("append"))
	}
	run(t, "vim", "--version")
	before := w.raw("s")
	vim("i" + badLine + "\x1b:wq\r\r:q!\r")
	was := w.read("last-error")
	require.Regexp(t, `append: line 1: .*message\.role`, was)
	vim("iabandoned\x1b:q!\r")
	require.Equal(t, was, w.read("last-error"))
	w.unchanged(before, "vim")
	vim("i" + message("of vim") + "\x1b:wq\r")
	require.Len(t, w.added(before), 1)
	require.Empty(t, w.read("last-error"))
	require.Contains(t, w.m.logged(), ".append.swp", "the log has what was refused")
}

// TestScriptGoesOn: a script that goes on after a refused line ends with an error, and the session before the gap.
func TestScriptGoesOn(t *testing.T) {
	for name, script := range map[string]string{
		"a loop of bash":   `exec 3>> "$1"; while read -r line; do printf '%s\n' "$line" >&3; done < "$2"`,
		"a loop that asks": `exec 3>> "$1"; e=0; while read -r line; do printf '%s\n' "$line" >&3 || e=1; done < "$2"; exit $e`,
		"jq":               `jq --unbuffered -c . "$2" > "$1"`,
		"awk":              `awk -v f="$1" '{ print >> f; fflush(f) }' "$2"`,
		"node": `node -e 'const fs = require("fs"), f = fs.openSync(process.argv[1], "a")
for (const line of fs.readFileSync(process.argv[2], "utf8").trimEnd().split("\n"))
	try { fs.writeSync(f, line + "\n") } catch { process.exitCode = 1 }' "$1" "$2"`,
		"python": `python3 -c "import os, sys
f, bad = os.open(sys.argv[1], os.O_WRONLY), 0
for line in open(sys.argv[2], 'rb'):
    try: os.write(f, line)
    except OSError: bad = 1
sys.exit(bad)" "$1" "$2"`,
	} {
		if _, err := exec.LookPath(name); name == "node" && err != nil {
			continue
		}
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
	require.NoError(t, os.Chown(w.in("append"), os.Geteuid(), os.Getegid()))
	require.NoError(t, os.Chtimes(w.in("append"), info.ModTime(), info.ModTime()))
	require.ErrorIs(t, os.Chmod(w.in("append"), 0o777), syscall.EPERM)
	require.Equal(t, was, w.read("last-error"))
}

package fs_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Making sessions (docs/design.md section 2, new-session).

// assistant is an assistant's message.
func assistant(text string) string {
	return `{"type":"message","message":{"role":"assistant","content":[{"type":"text","text":"` + text + `"}]}}`
}

// anywhere is the line for a session in a working directory that need not exist.
func anywhere(cwd string) string { return `{"cwd":"` + cwd + `","create":true}` }

// TestNewSession: a session is a file with a header alone as soon as its line is taken, and grows from then on.
func TestNewSession(t *testing.T) {
	w := newWriting(t)
	for _, sh := range shells {
		out, problems, err := inShell(t, sh, `exec 3<>"$1" && echo "$2" >&3 && read -r path <&3 && echo "$path"`, w.m.path("new-session"),
			anywhere("/home/dev/project"))
		require.NoError(t, err, problems)
		require.Regexp(t, `^sessions/p/[0-9TZ-]+_[0-9a-f-]+\n$`, out, "where sessions with that cwd are")
		require.FileExists(t, filepath.Join(w.dir, strings.TrimSpace(out)+".jsonl"))
	}
	path := ask(t, w.m.path("new-session"), `{"cwd":"/nowhere/yet","title":"A \"title\"","parentSession":"/x/y.jsonl","create":true}`)
	require.Regexp(t, `^sessions/--nowhere-yet--/[0-9TZ-]+_[0-9a-f-]+$`, path)
	dir, file := w.m.path(path), filepath.Join(w.dir, path+".jsonl")
	begun := string(read(t, file))
	require.Equal(t, 1, strings.Count(begun, "\n"), "a header alone")
	require.Equal(t, "600\n", run(t, "stat", "-c", "%a", file))
	require.Equal(t, filepath.Base(path)+".jsonl\n", run(t, "ls", "-A", filepath.Dir(file)), "and nothing beside it")
	require.Equal(t, "../../../"+path, link(t, w.m.path("by-cwd/nowhere/yet/latest")))
	require.Equal(t, []string{filepath.Base(path), filepath.Base(path) + ".jsonl"}, names(t, filepath.Dir(dir)))
	require.Equal(t, begun, run(t, "cat", dir+".jsonl"))
	require.Equal(t, "A \"title\"\n", run(t, "cat", dir+"/title"))
	require.Equal(t, "/nowhere/yet /x/y.jsonl 3\n", run(t, "jq", "-r", `"\(.cwd) \(.parentSession) \(.version)"`, dir+"/header.json"))
	require.Equal(t, "tree\n", run(t, "readlink", dir+"/leaf"), "before the first entry")
	require.Empty(t, run(t, "cat", dir+"/problems.jsonl"))
	run(t, "tar", "-cf", "/dev/null", "-C", w.m.dir, path)

	// A header alone is written to in every way.
	require.NoError(t, put(dir+"/title", "Another\n"))
	cwd := t.TempDir()
	moved := ask(t, w.m.path("new-session"), anywhere("/nowhere/yet"))
	require.NoError(t, put(w.m.path(moved, "cwd"), cwd+"\n"))
	require.NoFileExists(t, filepath.Join(w.dir, moved+".jsonl"))
	first := ask(t, dir+"/append", message("hello"))
	require.Contains(t, string(read(t, file)), "hello")
	second := ask(t, dir+"/append", `{"type":"thinking_level_change","thinkingLevel":"high"}`)
	require.NoError(t, put(dir+"/labels", first+" start\n"))
	run(t, "ln", "-sfn", "by-label/start", dir+"/leaf")
	require.Equal(t, "entries/"+first+".json\n", run(t, "readlink", dir+"/leaf"))
	require.Equal(t, "Another\nhello\n", shell(t, `cd "$1" && cat title && jq -r .messages[0].content context.json`, dir))
	forked := ask(t, dir+"/fork", second)
	require.Len(t, names(t, w.m.path(forked, "entries")), 3, "two entries and a label")
	require.FileExists(t, filepath.Join(w.dir, forked+".jsonl"))

	before := listing(t, w.dir)
	w.remount()
	require.Equal(t, before, listing(t, w.dir), "the end of a mount has nothing to save")
	require.Equal(t, "Another\n", run(t, "cat", w.m.path(path, "title")))
	require.NoError(t, os.Remove(file))
	require.NoDirExists(t, dir, "rm in SOURCE removes it")
}

// TestNewSessionImage: an image of the first line is a blob at once, which the file names, and one that a new line names is new,
// however old it was: a sweep finds it used.
func TestNewSessionImage(t *testing.T) {
	w := newWriting(t)
	path := w.m.path(ask(t, w.m.path("new-session"), anywhere("/home/dev/project")))
	pixels := strings.Repeat("QUJD", 300)
	line := `{"type":"message","message":{"role":"user","content":[{"type":"image","mimeType":"image/png","data":"` + pixels + `"}]}}`
	ask(t, path+"/append", line)
	blob := filepath.Join(w.dir, "blobs",
		strings.TrimPrefix(run(t, "sh", "-c", `jq -r 'select(.message).message.content[0].data' "$1" | cut -d: -f3 | tr -d '\n'`, "sh", path+".jsonl"), "\n"))
	require.FileExists(t, blob)
	require.Equal(t, pixels+"\n", run(t, "jq", "-r", ".messages[0].content[0].data", path+"/context.json"))
	require.NoError(t, os.Chtimes(blob, time.Time{}, time.Now().Add(-time.Hour)))
	ask(t, w.in("append"), line)
	is, err := os.Stat(blob)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), is.ModTime(), time.Minute)
}

// TestNewSessionRefused writes lines that new-session refuses. A line without a directory is EINVAL,
// and no session begins at the path of a file or link. A refused line makes no file.
func TestNewSessionRefused(t *testing.T) {
	w := newWriting(t)
	file, sessions := w.m.path("new-session"), filepath.Join(w.dir, "sessions")
	require.NoError(t, os.WriteFile(sessions+"/--file--", nil, 0o600))
	require.NoError(t, os.Symlink(t.TempDir(), sessions+"/--link--"))
	before, onDisk := listing(t, w.m.path("sessions")), listing(t, w.dir)
	for line, want := range map[string]error{
		"relative": syscall.EINVAL, `{"cwd":"/x"`: syscall.EINVAL, anywhere("/file"): syscall.ENOTDIR, anywhere("/link"): syscall.ENOTDIR,
		anywhere("/dev/null"): syscall.ENOTDIR, "/no/where": syscall.ENOENT,
	} {
		require.ErrorIs(t, put(file, line+"\n"), want, "%.100q", line)
		require.ErrorIs(t, put(file, line), want, "%.100q without newline", line)
	}
	require.ErrorIs(t, put(file, "/no/where\n"), syscall.ENOENT)
	require.Contains(t, run(t, "cat", w.m.path("last-error")),
		`no such directory: /no/where (0 applied) (no such file or directory); make it first, or write {"cwd": …, "create": true}`)
	require.Equal(t, before, listing(t, w.m.path("sessions")))
	require.Equal(t, onDisk, listing(t, w.dir))
	shell(t, `printf '%s' "$2" > "$1"; printf '\n\n' > "$1"; : > "$1"; touch "$1"; [ ! -s "$1" ]`, file, anywhere("/home/dev/project"))
	require.Len(t, names(t, w.m.path("sessions/p")), 4)
}

// TestScopeRenamed: a client gives another name to the directory of a session, at once or file by file. What was open for
// writing goes on; nothing is made at the old name.
func TestScopeRenamed(t *testing.T) {
	const script = `set -e; cd "$1"; exec 3<>"$2/append" 4>>"$2/labels" 5>>"$2/title"
		echo "$4" >&3; read -r id <&3
		eval "$5"; ls "$3" >/dev/null
		echo "$4" >&3; read -r next <&3; echo "$id start" >&4; echo "Renamed" >&5; python3 -c 'import os; os.fsync(3)'
		[ "$(readlink "$3/entries/../leaf")" != "" ]; cat "$3/title"; cut -f2 "$3/labels"; jq -r .parentId "$3/entries/$next.json"; echo "$id"`
	for name, move := range map[string]string{
		"renamed": `mv "$6/--old--" "$6/-new"`,
		"merged":  `mkdir "$6/-new"; mv "$6"/--old--/* "$6/-new/"; rmdir "$6/--old--"`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWriting(t)
			const other = "sessions/--old--/2026-01-01T00-00-00-000Z_019b76a1-0000-7000-8000-000000000000"
			require.NoError(t, os.MkdirAll(filepath.Join(w.dir, "sessions/--old--"), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(w.dir, other+".jsonl"),
				[]byte(`{"type":"session","version":3,"id":"019b76a1-0000-7000-8000-000000000000","timestamp":"2026-01-01T00:00:00.000Z",`+
					`"cwd":"/old"}`+"\n"), 0o600))
			path := ask(t, w.m.path("new-session"), anywhere("/old"))
			require.Equal(t, filepath.Dir(other), filepath.Dir(path))
			now := filepath.Join("sessions/-new", filepath.Base(path))
			out := shell(t, script, w.m.dir, path, now, message("hello"), move, filepath.Join(w.dir, "sessions"))
			lines := strings.Split(strings.TrimSpace(out), "\n")
			require.Len(t, lines, 4)
			require.Equal(t, []string{"Renamed", "start", lines[3]}, lines[:3])
			require.NoDirExists(t, filepath.Join(w.dir, "sessions/--old--"))
			require.FileExists(t, filepath.Join(w.dir, now+".jsonl"))
		})
	}
}

package fs_test

import (
	"fmt"
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

// TestNewSession: a new session is in the mount at once, and on disk with the first answer.
func TestNewSession(t *testing.T) {
	w := newWriting(t)
	before := listing(t, w.dir)
	for _, sh := range shells {
		out, problems, err := inShell(t, sh, `exec 3<>"$1" && echo "$2" >&3 && read -r path <&3 && echo "$path"`, w.m.path("new-session"), anywhere("/home/dev/project"))
		require.NoError(t, err, problems)
		require.Regexp(t, `^sessions/p/[0-9TZ-]+_[0-9a-f-]+\n$`, out, "where sessions with that cwd are")
	}
	path := ask(t, w.m.path("new-session"), `{"cwd":"/nowhere/yet","title":"A \"title\"","parentSession":"/x/y.jsonl","create":true}`)
	require.Regexp(t, `^sessions/--nowhere-yet--/[0-9TZ-]+_[0-9a-f-]+$`, path)
	dir := w.m.path(path)
	require.Equal(t, before, listing(t, w.dir), "nothing is on disk")
	require.Contains(t, names(t, w.m.path("sessions")), "--nowhere-yet--")
	require.Equal(t, "../../../"+path, link(t, w.m.path("by-cwd/nowhere/yet/latest")))
	require.Equal(t, []string{filepath.Base(path), filepath.Base(path) + ".jsonl"}, names(t, filepath.Dir(dir)))
	require.Equal(t, "A \"title\"\n", run(t, "cat", dir+"/title"))
	require.Equal(t, "/nowhere/yet /x/y.jsonl 3\n", run(t, "jq", "-r", `"\(.cwd) \(.parentSession) \(.version)"`, dir+"/header.json"))
	require.Equal(t, "tree\n", run(t, "readlink", dir+"/leaf"), "before the first entry")
	first := ask(t, dir+"/append", message("hello"))
	second := ask(t, dir+"/append", `{"type":"thinking_level_change","thinkingLevel":"high"}`)
	require.NoError(t, put(dir+"/labels", first+" start\n"))
	require.NoError(t, put(dir+"/title", "Another\n"))
	run(t, "ln", "-sfn", "by-label/start", dir+"/leaf")
	require.Equal(t, "entries/"+first+".json\n", run(t, "readlink", dir+"/leaf"))
	require.Equal(t, "Another\nhello\n", shell(t, `cd "$1" && cat title && jq -r .messages[0].content context.json`, dir))
	require.Equal(t, before, listing(t, w.dir), "still nothing is on disk")
	inMemory := run(t, "cat", dir+".jsonl")
	forked := ask(t, dir+"/fork", second)
	require.Len(t, names(t, w.m.path(forked, "entries")), 3, "two entries and a label")
	require.Equal(t, before, listing(t, w.dir), "the fork of what is not on disk is not on disk")

	third := ask(t, dir+"/append", assistant("hi"))
	onDisk := string(read(t, filepath.Join(w.dir, path+".jsonl")))
	require.True(t, strings.HasPrefix(onDisk, inMemory), "all that was in memory")
	list := records(t, onDisk)
	require.Equal(t, third, list[len(list)-1].ID)
	require.Equal(t, first, list[len(list)-1].parent())
	require.Equal(t, onDisk, run(t, "cat", dir+".jsonl"))
	require.Equal(t, "600\n", run(t, "stat", "-c", "%a", filepath.Join(w.dir, path+".jsonl")))
	ask(t, dir+"/append", message("and on"))
	require.Equal(t, filepath.Base(path)+".jsonl\n", run(t, "ls", "-A", filepath.Dir(filepath.Join(w.dir, path))))
	inMemory = run(t, "cat", w.m.path(forked)+".jsonl")
	require.NoFileExists(t, filepath.Join(w.dir, forked+".jsonl"))
	w.remount()
	require.Equal(t, inMemory, run(t, "cat", w.m.path(forked)+".jsonl"), "what has entries is on disk when the mount has ended")
	require.Equal(t, "Another\n", run(t, "cat", w.m.path(path, "title")))
	require.Empty(t, run(t, "cat", w.m.path(path, "problems.jsonl")))
	require.Equal(t, []string{"s", "s.jsonl"}, names(t, w.m.path("sessions/p")), "those into which nobody typed are gone")
	require.Equal(t, filepath.Dir(path), filepath.Dir(ask(t, w.m.path("new-session"), anywhere("/nowhere/yet/"))))
}

// TestNewSessionImage: what a sweep of blobs would find that no file names is not there, and a blob that a new line names is
// new, however old it was.
func TestNewSessionImage(t *testing.T) {
	w := newWriting(t)
	path := w.m.path(ask(t, w.m.path("new-session"), anywhere("/home/dev/project")))
	pixels := strings.Repeat("QUJD", 300)
	line := `{"type":"message","message":{"role":"user","content":[{"type":"image","mimeType":"image/png","data":"` + pixels + `"}]}}`
	blobs := filepath.Join(w.dir, "blobs")
	ask(t, path+"/append", line)
	require.NoDirExists(t, blobs)
	require.Equal(t, pixels+"\n", run(t, "jq", "-r", ".messages[0].content[0].data", path+"/context.json"))
	run(t, "sync", path+"/append")
	blob := filepath.Join(blobs, strings.TrimPrefix(run(t, "sh", "-c", `jq -r 'select(.message).message.content[0].data' "$1" | cut -d: -f3 | tr -d '\n'`, "sh", path+".jsonl"), "\n"))
	require.FileExists(t, blob)
	require.Equal(t, pixels+"\n", run(t, "jq", "-r", ".messages[0].content[0].data", path+"/context.json"))
	require.NoError(t, os.Chtimes(blob, time.Time{}, time.Now().Add(-time.Hour)))
	ask(t, w.in("append"), line)
	is, err := os.Stat(blob)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), is.ModTime(), time.Minute)
}

// TestNewSessionRefused: a line that tells no directory is EINVAL, and no session is begun in what is no directory. What gets
// into the way later does no harm: the text stays in memory, and everything else goes on.
func TestNewSessionRefused(t *testing.T) {
	w := newWriting(t)
	file, sessions := w.m.path("new-session"), filepath.Join(w.dir, "sessions")
	require.NoError(t, os.WriteFile(sessions+"/--file--", nil, 0o600))
	require.NoError(t, os.Symlink(t.TempDir(), sessions+"/--link--"))
	before := listing(t, w.m.path("sessions"))
	for line, want := range map[string]error{
		"relative": syscall.EINVAL, `{"cwd":"/x"`: syscall.EINVAL, anywhere("/file"): syscall.ENOTDIR, anywhere("/link"): syscall.ENOTDIR, anywhere("/dev/null"): syscall.ENOTDIR, "/no/where": syscall.ENOENT,
	} {
		require.ErrorIs(t, put(file, line+"\n"), want, "%.100q", line)
		require.ErrorIs(t, put(file, line), want, "%.100q without newline", line)
	}
	require.ErrorIs(t, put(file, "/no/where\n"), syscall.ENOENT)
	require.Contains(t, run(t, "cat", w.m.path("last-error")), `no such directory: /no/where (0 applied) (no such file or directory); make it first, or write {"cwd": …, "create": true}`)
	require.Equal(t, before, listing(t, w.m.path("sessions")))
	shell(t, `printf '%s' "$2" > "$1"; printf '\n\n' > "$1"; : > "$1"; touch "$1"; [ ! -s "$1" ]`, file, anywhere("/home/dev/project"))
	require.Len(t, names(t, w.m.path("sessions/p")), 4)

	path := ask(t, file, anywhere("/later"))
	ask(t, w.m.path(path, "append"), message("typed"))
	require.NoError(t, os.WriteFile(sessions+"/--later--", nil, 0o600))
	require.ErrorIs(t, put(w.m.path(path, "append"), assistant("refused")+"\n"), syscall.ENOTDIR)
	run(t, "ls", "-lR", w.m.path("sessions"))
	run(t, "tar", "-cf", "/dev/null", "-C", w.m.dir, "sessions")
	require.NoError(t, os.Remove(sessions+"/--later--"))
	ask(t, w.m.path(path, "append"), assistant("hi"))
	require.Contains(t, string(read(t, filepath.Join(w.dir, path+".jsonl"))), "typed")
}

// TestScopeRenamed: a client gives another name to the directory of a session, at once or file by file. What was open for
// writing goes on, and a session that waits in memory goes with its directory; nothing is made at the old name.
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
		for _, waits := range []bool{false, true} {
			if waits && name == "merged" {
				continue // it is not there to be moved
			}
			t.Run(fmt.Sprint(name, waits), func(t *testing.T) {
				w := newWriting(t)
				const other = "sessions/--old--/2026-01-01T00-00-00-000Z_019b76a1-0000-7000-8000-000000000000"
				require.NoError(t, os.MkdirAll(filepath.Join(w.dir, "sessions/--old--"), 0o700))
				require.NoError(t, os.WriteFile(filepath.Join(w.dir, other+".jsonl"), []byte(`{"type":"session","version":3,"id":"019b76a1-0000-7000-8000-000000000000","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/old"}`+"\n"), 0o600))
				path := ask(t, w.m.path("new-session"), anywhere("/old"))
				require.Equal(t, filepath.Dir(other), filepath.Dir(path))
				if !waits {
					ask(t, w.m.path(path, "append"), assistant("hi"))
				}
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
}

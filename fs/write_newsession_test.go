package fs_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Making sessions (docs/design.md section 2, new-session).

// assistant is an assistant's message.
func assistant(text string) string {
	return `{"type":"message","message":{"role":"assistant","content":[{"type":"text","text":"` + text + `"}]}}`
}

// TestNewSession: a new session is in the mount at once, and on disk with the first answer.
func TestNewSession(t *testing.T) {
	w := newWriting(t)
	before := listing(t, w.dir)
	for _, sh := range shells {
		out, problems, err := inShell(t, sh, `exec 3<>"$1" && echo "$2" >&3 && read -r path <&3 && echo "$path"`, w.m.path("new-session"), "/home/dev/project")
		require.NoError(t, err, problems)
		require.Regexp(t, `^sessions/p/[0-9TZ-]+_[0-9a-f-]+\n$`, out, "where sessions with that cwd are")
	}
	path := ask(t, w.m.path("new-session"), `{"cwd":"/nowhere/yet","title":"A \"title\"","parentSession":"/x/y.jsonl"}`)
	require.Regexp(t, `^sessions/--nowhere-yet--/[0-9TZ-]+_[0-9a-f-]+$`, path)
	dir := w.m.path(path)
	require.Equal(t, before, listing(t, w.dir), "nothing is on disk")
	require.Contains(t, names(t, w.m.path("sessions")), "--nowhere-yet--")
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
	require.Equal(t, "Another\n", run(t, "cat", dir+"/title"))
	require.Equal(t, "hello\n", run(t, "jq", "-r", ".messages[0].content", dir+"/context.json"))
	require.Equal(t, "hello\n", run(t, "jq", "-r", ".message.content", dir+"/leaf"))
	require.Equal(t, before, listing(t, w.dir), "still nothing is on disk")
	inMemory := run(t, "cat", dir+".jsonl")
	forked := ask(t, dir+"/fork", second)
	require.Len(t, names(t, w.m.path(forked, "entries")), 3, "two entries and a label")
	require.Equal(t, before, listing(t, w.dir), "the fork of what is not on disk is not on disk")

	third := ask(t, dir+"/append", assistant("hi"))
	onDisk, err := os.ReadFile(filepath.Join(w.dir, path+".jsonl"))
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(onDisk), inMemory), "all that was in memory")
	list := records(t, string(onDisk))
	require.Equal(t, third, list[len(list)-1].ID)
	require.Equal(t, first, list[len(list)-1].parent())
	require.Equal(t, string(onDisk), run(t, "cat", dir+".jsonl"))
	info, err := os.Stat(filepath.Join(w.dir, path+".jsonl"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	ask(t, dir+"/append", message("and on"))
	require.Equal(t, filepath.Base(path)+".jsonl\n", run(t, "ls", "-A", filepath.Dir(filepath.Join(w.dir, path))))
	fork := forked
	inMemory = run(t, "cat", w.m.path(fork)+".jsonl")
	require.NoFileExists(t, filepath.Join(w.dir, fork+".jsonl"))
	w.remount()
	require.Equal(t, inMemory, run(t, "cat", w.m.path(fork)+".jsonl"), "what has entries is on disk when the mount has ended")
	require.Equal(t, "Another\n", run(t, "cat", w.m.path(path, "title")))
	require.Empty(t, run(t, "cat", w.m.path(path, "problems.jsonl")))
	require.Equal(t, []string{"s", "s.jsonl"}, names(t, w.m.path("sessions/p")), "those into which nobody typed are gone")
	require.Equal(t, filepath.Dir(path), filepath.Dir(ask(t, w.m.path("new-session"), "/nowhere/yet/")))
}

func TestNewSessionRefusals(t *testing.T) {
	w := newWriting(t)
	file := w.m.path("new-session")
	before := listing(t, w.m.path("sessions"))
	for _, line := range []string{
		"relative", "./x", "~/x", `{}`, `{"cwd":7}`, `{"cwd":"relative"}`, `{"cwd":"/x","title":7}`, `{"cwd":"/x"`, `{"cwd":"/x"}}`, "[]", "/a\x00b", "/\xff", `{"cwd":"/a\nb"}`,
		"/" + strings.Repeat("x", 4095), `{"cwd":"/x","parentSession":"` + strings.Repeat("x", 4096) + `"}`, `{"cwd":"/x","title":"` + strings.Repeat("x", 4097) + `"}`, `{"cwd":""}`, `{"cwd":"/x","parentSession":[]}`,
	} {
		require.ErrorIs(t, put(file, line+"\n"), syscall.EINVAL, "%.100q", line)
		require.ErrorIs(t, put(file, line), syscall.EINVAL, "%.100q without newline", line)
	}
	require.Equal(t, before, listing(t, w.m.path("sessions")))
	require.Contains(t, w.m.logged(), "expected an absolute path")
	shell(t, `printf '%s' /home/dev/project > "$1"; printf '\n\n' > "$1"; : > "$1"; touch "$1"`, file)
	require.Len(t, names(t, w.m.path("sessions/p")), 4)
	require.Zero(t, func() int64 { i, err := os.Stat(file); require.NoError(t, err); return i.Size() }())
}

// TestNewSessionInTheWay: no session is begun in what is no directory.
func TestNewSessionInTheWay(t *testing.T) {
	w := newWriting(t)
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "sessions/--file--"), nil, 0o600))
	require.NoError(t, os.Symlink(t.TempDir(), filepath.Join(w.dir, "sessions/--link--")))
	before := listing(t, w.m.path("sessions"))
	for _, cwd := range []string{"/file", "/link"} {
		require.ErrorIs(t, put(w.m.path("new-session"), cwd+"\n"), syscall.ENOTDIR, cwd)
	}
	require.Equal(t, before, listing(t, w.m.path("sessions")))

	// What gets into the way later does no harm: the text stays in memory, everything else goes on.
	path := ask(t, w.m.path("new-session"), "/later")
	ask(t, w.m.path(path, "append"), message("typed"))
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "sessions/--later--"), nil, 0o600))
	require.ErrorIs(t, put(w.m.path(path, "append"), assistant("refused")+"\n"), syscall.ENOTDIR)
	run(t, "ls", "-lR", w.m.path("sessions"))
	run(t, "tar", "-cf", "/dev/null", "-C", w.m.dir, "sessions")
	require.NoError(t, os.Remove(filepath.Join(w.dir, "sessions/--later--")))
	ask(t, w.m.path(path, "append"), assistant("hi"))
	require.Contains(t, run(t, "cat", filepath.Join(w.dir, path+".jsonl")), "typed")
}

// TestNewSessionLarge: what is too much for memory goes to disk at once.
func TestNewSessionLarge(t *testing.T) {
	notUnderRace(t)
	w := newWriting(t)
	path := ask(t, w.m.path("new-session"), "/large")
	append := w.m.path(path, "append")
	line := `{"type":"custom","customType":"t","data":[` + strings.Repeat(`"`+strings.Repeat("x", 400_000)+`",`, 25) + `""]}` // 10 MB
	for range 2 {
		require.NoError(t, put(append, line+"\n"))
		require.NoFileExists(t, filepath.Join(w.dir, path+".jsonl"))
	}
	require.NoError(t, put(append, line+"\n"))
	info, err := os.Stat(filepath.Join(w.dir, path+".jsonl"))
	require.NoError(t, err)
	require.Greater(t, info.Size(), int64(3*len(line)))
	other := ask(t, w.m.path("new-session"), "/other")
	ask(t, w.m.path(other, "append"), message("there is room again"))
	require.NoFileExists(t, filepath.Join(w.dir, other+".jsonl"))
}

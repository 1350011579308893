package fs_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// gzipped compresses text as gzip does.
func gzipped(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.Bytes()
}

// archived writes an archived session beside the sessions of an agent directory, and returns the file.
func (a agent) archived(t testing.TB, name, text string) string {
	t.Helper()
	file := filepath.Join(a.dir, "archive/sessions/p", name+".jsonl.gz")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, gzipped(text), 0o644))
	return file
}

// chain returns a session of n entries.
func chain(id string, n int) string {
	var b strings.Builder
	b.WriteString(header(id))
	for i := range n {
		b.WriteString(entry(i, entryID(i), before(i, i-1), "text of "+id))
	}
	return b.String()
}

// TestArchive compares an archived session with the same session in sessions/: everything that is read is the same, in
// whatever way it is read.
func TestArchive(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	text := chain("s", 30) + `{"type":"label","id":"lab","parentId":"` + entryID(29) + `","timestamp":"2026-02-16T12:00:02.000Z","targetId":"` + entryID(3) + `","label":"here"}` + "\n"
	a.write("s", text)
	file := a.archived(t, "s", text)
	for _, dir := range []string{a.path("s"), filepath.Join(filepath.Dir(file), "s")} {
		require.NoError(t, os.Mkdir(dir, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "1.bash.log"), []byte("output"), 0o644))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "Task.jsonl"), []byte(chain("task", 2)), 0o644))
	}
	for _, dir := range []string{filepath.Join(a.dir, "archive/sessions"), filepath.Join(a.dir, "archive/sessions/p")} {
		run(t, "touch", "-r", a.path("s.jsonl"), dir)
	}
	run(t, "touch", "-r", a.path("s.jsonl"), file)
	m := mountForTest(t, a.dir)
	require.Equal(t, []string{"index.jsonl", "p"}, names(t, m.path("archive")))
	require.Equal(t, []string{"s", "s.jsonl.gz"}, names(t, m.path("archive/p")))
	run(t, "cmp", m.path("archive/p/s.jsonl.gz"), file)
	require.Equal(t, text, run(t, "zcat", m.path("archive/p/s.jsonl.gz")))
	require.Equal(t, names(t, m.session("s")), names(t, m.path("archive/p/s")))
	run(t, "diff", "-r", "--no-dereference", m.session("s"), m.path("archive/p/s"))
	for _, name := range []string{"secrets.jsonl", "1.bash.log", "Task/entries/" + entryID(1) + ".json", "branches/" + entryID(7) + "/entries.jsonl", "branches/" + entryID(7) + "/context.json"} {
		require.Equal(t, run(t, "cat", m.session("s", name)), run(t, "cat", m.path("archive/p/s", name)), name)
	}
	require.Equal(t, run(t, "tar", "-C", m.session("s"), "-cf", "-", "."), run(t, "tar", "-C", m.path("archive/p/s"), "-cf", "-", "."), "modes and times too")
	require.Equal(t, shell(t, `cd "$1"; cat entries/*.json`, m.session("s")), shell(t, `cd "$1"; cat entries/*.json`, m.path("archive/p/s")))
	run(t, "cp", "-a", m.path("archive/p/s"), filepath.Join(t.TempDir(), "copy"))
}

// TestArchiveIsFound: by its id where no other session has it, in its own list, and as a parent; in the other views
// there are the sessions that are not archived.
func TestArchiveIsFound(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	a.write("live", sessionOf("1111live", "/w", "live"), entry(0, "e0", "", "x"))
	a.archived(t, "old", sessionOf("1111old", "/w", "old")+entry(0, "e0", "", "x"))
	a.archived(t, "other", sessionOf("2222other", "/w", "other")+entry(0, "e0", "", "x"))
	m := mountForTest(t, a.dir)
	require.Equal(t, "../sessions/p/live", link(t, m.path("by-id/1111")))
	require.Equal(t, "../archive/p/old", link(t, m.path("by-id/1111old")))
	require.Equal(t, "../archive/p/other", link(t, m.path("by-id/22")))
	require.Contains(t, run(t, "cat", m.path("by-id/22/header.json")), "2222other")
	require.Equal(t, []string{"1111live"}, names(t, m.path("by-id")))
	require.Len(t, names(t, m.path("recent")), 1)
	require.Equal(t, []string{"latest", "live"}, names(t, m.path("by-cwd/w")))
	_, err := os.Readlink(m.path("by-id/3333"))
	require.ErrorIs(t, err, os.ErrNotExist)

	require.Equal(t, 1, strings.Count(run(t, "cat", m.path("index.jsonl")), "\n"))
	found := map[string]float64{}
	for line := range strings.Lines(run(t, "cat", m.path("archive/index.jsonl"))) {
		var info struct {
			Path string
			Size float64
		}
		require.NoError(t, json.Unmarshal([]byte(line), &info))
		require.DirExists(t, m.path(info.Path))
		found[info.Path] = info.Size
	}
	size := float64(len(sessionOf("1111old", "/w", "old") + entry(0, "e0", "", "x")))
	require.Equal(t, map[string]float64{"archive/p/old": size, "archive/p/other": size + 4}, found)

	a.archived(t, "new", sessionOf("4444new", "/w", "new"))
	require.Equal(t, "../archive/p/new", link(t, m.path("by-id/44")), "archived after the mount")
	require.Equal(t, 3, strings.Count(run(t, "cat", m.path("archive/index.jsonl")), "\n"))
}

// TestArchiveIsReadOnly: every write is EROFS, changes nothing, and last-error says what to do.
func TestArchiveIsReadOnly(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	a.write("live", chain("live", 2))
	file := a.archived(t, "s", chain("s", 3))
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	m := mountForTest(t, a.dir)
	s := m.path("archive/p/s")
	line := []byte(`{"type":"custom","customType":"x"}` + "\n")
	write := func(name string) func() error {
		return func() error { return os.WriteFile(filepath.Join(s, name), line, 0o600) }
	}
	attempts := map[string]func() error{
		"append": write("append"), "labels": write("labels"), "title": write("title"), "cwd": write("cwd"), "fork": write("fork"), "new file": write("new"),
		"leaf":       func() error { return os.Symlink("entries/"+entryID(0)+".json", filepath.Join(s, "tmp")) },
		"unlink":     func() error { return os.Remove(filepath.Join(s, "leaf")) },
		"rename":     func() error { return os.Rename(filepath.Join(s, "leaf"), filepath.Join(s, "leaf2")) },
		"chmod":      func() error { return os.Chmod(filepath.Join(s, "append"), 0o777) },
		"in entries": func() error { return os.Remove(filepath.Join(s, "entries", entryID(0)+".json")) },
	}
	for name, try := range attempts {
		require.NoError(t, err)
		require.ErrorIs(t, try(), syscall.EROFS, name)
		said := run(t, "cat", filepath.Join(s, "last-error"))
		require.Contains(t, said, "archived", name)
		require.Contains(t, said, "archive/sessions/p/s.jsonl.gz", name)
	}
	for _, try := range []func() error{
		func() error { return os.Remove(m.path("archive/p/s.jsonl.gz")) },
		func() error { return os.Mkdir(m.path("archive/q"), 0o700) },
		func() error { return os.WriteFile(m.path("archive/p/new.jsonl"), line, 0o600) },
		func() error { return os.Chmod(m.path("archive/p/s.jsonl.gz"), 0o600) },
	} {
		require.ErrorIs(t, try(), syscall.EROFS)
		require.Contains(t, run(t, "cat", m.path("last-error")), "archived")
	}
	now, err := os.ReadFile(file)
	require.NoError(t, err)
	require.True(t, bytes.Equal(data, now))
	require.Equal(t, []string{"s", "s.jsonl.gz"}, names(t, m.path("archive/p")))
	require.Equal(t, chain("live", 2), string(read(t, a.path("live.jsonl"))))
}

// TestArchiveDamaged: what cannot be unpacked is an error with a reason, does not hide its neighbours, and is well again
// when the file is.
func TestArchiveDamaged(t *testing.T) {
	t.Parallel()
	notUnderRace(t)
	a := newAgent(t)
	text := chain("s", 2000)
	good := a.archived(t, "good", chain("good", 3))
	cut, plain, gone := a.archived(t, "cut", text), a.archived(t, "plain", text), a.archived(t, "gone", text)
	data, err := os.ReadFile(cut)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(cut, data[:len(data)/2], 0o644))
	require.NoError(t, os.WriteFile(plain, []byte(text), 0o644))
	bomb := a.archived(t, "bomb", header("bomb"))
	start, err := os.ReadFile(bomb)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(bomb, append(start, bytes.Repeat(gzipped(strings.Repeat(" ", 1<<20)), 65)...), 0o644))
	two := a.archived(t, "two", chain("two", 5))
	more, err := os.ReadFile(two)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(two, append(append(more, gzipped(entry(5, entryID(5), entryID(4), "x"))...), "junk"...), 0o644))
	m := mountForTest(t, a.dir)
	require.Equal(t, []string{"bomb", "bomb.jsonl.gz", "cut", "cut.jsonl.gz", "gone", "gone.jsonl.gz", "good", "good.jsonl.gz", "plain.jsonl.gz", "two", "two.jsonl.gz"}, names(t, m.path("archive/p")))
	require.Len(t, names(t, m.path("archive/p/good/entries")), 3)
	require.Len(t, names(t, m.path("archive/p/two/entries")), 6)
	for name, want := range map[string]error{"cut": syscall.EIO, "bomb": syscall.EFBIG} {
		for range 2 {
			_, err := os.ReadDir(m.path("archive/p", name, "entries"))
			require.ErrorIs(t, err, want, name)
			_, err = os.ReadFile(m.path("archive/p", name, "context.json"))
			require.ErrorIs(t, err, want, name)
		}
	}
	require.Contains(t, m.logged(), "cut short")
	require.Contains(t, m.logged(), "would be larger than 64 MiB")
	open, err := os.Open(m.path("archive/p/gone/entries", entryID(1999)+".json"))
	require.NoError(t, err)
	defer open.Close()
	require.NoError(t, os.Remove(gone))
	rest, err := io.ReadAll(open)
	require.NoError(t, err)
	require.Contains(t, string(rest), entryID(1999))
	_, err = os.ReadDir(m.path("archive/p/gone/entries"))
	require.Error(t, err)
	require.NoError(t, os.WriteFile(cut, data, 0o644))
	require.Len(t, names(t, m.path("archive/p/cut/entries")), 2000)
	require.NoError(t, os.WriteFile(cut+".new", gzipped(chain("s", 10)), 0o644))
	require.NoError(t, os.Rename(cut+".new", cut))
	require.Len(t, names(t, m.path("archive/p/cut/entries")), 10)
	require.NoError(t, os.Remove(bomb))
	require.FileExists(t, good)
}

// TestArchiveHostile: links and what else is not a file below archive/ are not followed.
func TestArchiveHostile(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	a.archived(t, "s", chain("s", 3))
	outside := filepath.Join(t.TempDir(), "outside.jsonl.gz")
	require.NoError(t, os.WriteFile(outside, gzipped(chain("outside", 3)), 0o644))
	p := filepath.Join(a.dir, "archive/sessions/p")
	require.NoError(t, os.Symlink(outside, filepath.Join(p, "link.jsonl.gz")))
	require.NoError(t, os.Symlink(filepath.Dir(outside), filepath.Join(p, "dir")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(p, "fifo.jsonl.gz"), 0o644))
	require.NoError(t, os.Mkdir(filepath.Join(p, "directory.jsonl.gz"), 0o755))
	m := mountForTest(t, a.dir)
	require.Equal(t, []string{"dir", "directory.jsonl.gz", "link.jsonl.gz", "s", "s.jsonl.gz"}, names(t, m.path("archive/p")))
	for _, name := range []string{"link", "fifo", "directory", "dir/outside"} {
		_, err := os.Stat(m.path("archive/p", name, "header.json"))
		require.Error(t, err, name)
	}
	require.Equal(t, 1, strings.Count(run(t, "cat", m.path("archive/index.jsonl")), "\n"))
}

package fs_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
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
	text := chain("s", 30) + `{"type":"label","id":"lab","parentId":"` + entryID(29) + `","timestamp":"2026-02-16T12:00:02.000Z","targetId":"` +
		entryID(3) + `","label":"here"}` + "\n"
	a.write("s", text)
	file := a.archived(t, "s", text)
	for _, dir := range []string{a.path("s"), filepath.Join(filepath.Dir(file), "s")} {
		writeFile(t, filepath.Join(dir, "1.bash.log"), "output")
		require.NoError(t, os.WriteFile(filepath.Join(dir, "Task.jsonl"), []byte(chain("task", 2)), 0o644))
	}
	run(t, "touch", "-r", a.path("s.jsonl"), filepath.Join(a.dir, "archive/sessions"), filepath.Join(a.dir, "archive/sessions/p"), file)
	m := mountForTest(t, a.dir)
	require.Equal(t, []string{"index.jsonl", "p"}, names(t, m.path("archive")))
	require.Equal(t, []string{"s", "s.jsonl.gz"}, names(t, m.path("archive/p")))
	run(t, "cmp", m.path("archive/p/s.jsonl.gz"), file)
	require.Equal(t, text, run(t, "zcat", m.path("archive/p/s.jsonl.gz")))
	require.Equal(t, names(t, m.session("s")), names(t, m.path("archive/p/s")))
	run(t, "diff", "-r", "--no-dereference", m.session("s"), m.path("archive/p/s"))
	for _, name := range []string{"secrets.jsonl", "1.bash.log", "Task/entries/" + entryID(1) + ".json", "branches/" + entryID(7) + "/entries.jsonl",
		"branches/" + entryID(7) + "/context.json"} {
		require.Equal(t, run(t, "cat", m.session("s", name)), run(t, "cat", m.path("archive/p/s", name)), name)
	}
	require.Equal(t, run(t, "tar", "-C", m.session("s"), "-cf", "-", "."), run(t, "tar", "-C", m.path("archive/p/s"), "-cf", "-", "."), "modes and times too")
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
	require.Equal(t, []string{"2026-02-16T10-20-live", "latest"}, names(t, m.path("by-cwd/w")))
	absent(t, m.path("by-id/3333"))

	require.Equal(t, "1\n", shell(t, `wc -l < "$1"`, m.path("index.jsonl")))
	size := len(sessionOf("1111old", "/w", "old") + entry(0, "e0", "", "x"))
	require.Equal(t, fmt.Sprintf("archive/p/old %d\narchive/p/other %d\n", size, size+4),
		shell(t, `cd "$1"; jq -r '"\(.path) \(.size)"' archive/index.jsonl | sort |
			while read -r path size; do [ -d "$path" ] && echo "$path $size"; done`, m.dir))

	a.archived(t, "new", sessionOf("4444new", "/w", "new"))
	require.Equal(t, "../archive/p/new", link(t, m.path("by-id/44")), "archived after the mount")
	require.Equal(t, 3, strings.Count(run(t, "cat", m.path("archive/index.jsonl")), "\n"))
}

// TestArchiveIsReadOnly: every write is EROFS, changes nothing, and last-error says what to do.
func TestArchiveIsReadOnly(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	a.archived(t, "s", chain("s", 3))
	before := statListing(t, a.dir)
	m := mountForTest(t, a.dir)
	first := entryID(0) + ".json"
	for _, script := range []string{
		`echo '{"type":"custom","customType":"x"}' > append`, `echo x > labels`, `echo x > title`, `echo /tmp > cwd`, `echo x > fork`, `echo x > new`,
		`ln -sfn entries/` + first + ` leaf`,
		`unlink leaf`, `mv -T leaf leaf2`, `chmod 777 append`, `rm -f entries/` + first,
		`rm -f ../s.jsonl.gz`, `mkdir ../../q`, `echo x > ../new.jsonl`, `chmod 600 ../s.jsonl.gz`,
	} {
		_, said, err := tool(t, "bash", "-c", `cd "$1" && `+script, "bash", m.path("archive/p/s"))
		require.Error(t, err, script)
		require.Contains(t, said, "Read-only file system", script)
		told := m.path("archive/p/s/last-error")
		if strings.Contains(script, "../") {
			told = m.path("last-error")
		}
		require.Contains(t, run(t, "cat", told), "archived", script)
		require.True(t, strings.Contains(script, "../") || strings.Contains(run(t, "cat", told), "archive/sessions/p/s.jsonl.gz"), script)
		require.NoError(t, os.WriteFile(m.path("new-session"), nil, 0)) // which empties the root's last-error
	}
	require.Equal(t, before, statListing(t, a.dir))
}

// TestArchiveDamaged: what cannot be unpacked is an error with a reason, does not hide its neighbours, and is well again
// when the file is. Package gzip has each damage.
func TestArchiveDamaged(t *testing.T) {
	t.Parallel()
	notUnderRace(t)
	a := newAgent(t)
	data := string(gzipped(chain("s", 2000)))
	file := map[string]string{}
	for name, content := range map[string]string{
		"good": string(gzipped(chain("good", 3))), "cut": data[:len(data)/2], "plain": chain("s", 3),
		"bomb": string(gzipped(header("bomb"))) + strings.Repeat(string(gzipped(strings.Repeat(" ", 1<<20))), 65),
	} {
		file[name] = a.archived(t, name, "")
		require.NoError(t, os.WriteFile(file[name], []byte(content), 0o644))
	}
	m := mountForTest(t, a.dir)
	require.Equal(t, []string{"bomb", "bomb.jsonl.gz", "cut", "cut.jsonl.gz", "good", "good.jsonl.gz", "plain.jsonl.gz"}, names(t, m.path("archive/p")))
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
	require.Len(t, names(t, m.path("archive/p/good/entries")), 3)
	require.NoError(t, os.WriteFile(file["cut"], []byte(data), 0o644))
	require.Len(t, names(t, m.path("archive/p/cut/entries")), 2000)
	open, err := os.Open(m.path("archive/p/cut/entries", entryID(1999)+".json"))
	require.NoError(t, err)
	defer open.Close()
	require.NoError(t, os.Remove(file["cut"]))
	rest, err := io.ReadAll(open)
	require.NoError(t, err)
	require.Contains(t, string(rest), entryID(1999))
	_, err = os.ReadDir(m.path("archive/p/cut/entries"))
	require.Error(t, err)
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

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

// The prompt history, beside writers that use SQLite as the client does: from Python.

// historyLibrary is what the Python programs share: open(path) opens or makes a database as version 18.2.3 of the
// client does, add(db, …) stores a prompt. It does not wait for locks: nobody else may take one.
var historyLibrary = program("history.py")

// history runs a Python program on a history.db; $1 is its path.
func history(t *testing.T, program string, args ...string) string {
	return python(t, historyLibrary+program, args...)
}

// newHistory makes an agent directory with three prompts.
func newHistory(t *testing.T) (dir, database string) {
	dir = t.TempDir()
	database = filepath.Join(dir, "history.db")
	history(t, `
db = open_history(sys.argv[1])
add(db, "fix the git-commit hook", 1770000000)
add(db, "why is it red?", 1770000300, None, "019d3d96-6b66-7996-8ead-42aae5653abc")
add(db, 'fix "it"\nplease', 1770000100)
db.close()`, database)
	return dir, database
}

func TestHistory(t *testing.T) {
	dir, database := newHistory(t)
	require.NoError(t, os.Chmod(database, 0o600))
	then := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	require.NoError(t, os.Chtimes(database, then, then))
	before := statListing(t, dir)
	m := mountForTest(t, dir)
	at := m.path("history")
	prompts, search := at+"/prompts.jsonl", at+"/search"

	require.Equal(t, "prompts.jsonl\nsearch\n", run(t, "ls", "-A", at))
	require.Empty(t, run(t, "ls", "-A", search))
	require.Equal(t, `{"id":2,"prompt":"why is it red?","created_at":"2026-02-02T02:45:00Z","cwd":null,"session_id":"019d3d96-6b66-7996-8ead-42aae5653abc"}
{"id":3,"prompt":"fix \"it\"\nplease","created_at":"2026-02-02T02:41:40Z","cwd":"/home/dev/p","session_id":null}
{"id":1,"prompt":"fix the git-commit hook","created_at":"2026-02-02T02:40:00Z","cwd":"/home/dev/p","session_id":null}
`, run(t, "cat", prompts))
	require.Equal(t, fmt.Sprintln("-r--------", then.Unix()), run(t, "stat", "-c", "%A %Y", prompts))
	require.Equal(t, run(t, "wc", "-c", prompts), run(t, "stat", "-c", "%s %n", prompts))

	for match, want := range map[string]string{
		"fix": "3 1", "fix NOT hook": "3", "nowhere": "", strings.Repeat("a", 255): "", "*fix": "3 1", "why is it red?": "2",
	} {
		got := shell(t, `[ "$(stat -c %s "$1")" = "$(wc -c < "$1")" ] && echo $(jq -r .id "$1")`, search+"/"+match)
		require.Equal(t, want+"\n", got, match)
	}
	for _, match := range []string{`"`, "\x01"} {
		_, problems, err := tool(t, "cat", search+"/"+match)
		require.Error(t, err, match)
		require.Contains(t, problems, "Invalid argument", match)
		require.Contains(t, run(t, "cat", m.path("last-error")), " history/search/"+strings.ReplaceAll(match, "\x01", `\u0001`)+": not a search query: ")
	}
	require.NoFileExists(t, search+"/.git")
	for _, name := range []string{prompts, search + "/fix"} {
		_, err := os.OpenFile(name, os.O_WRONLY, 0)
		require.ErrorIs(t, err, refusedOpen())
		require.ErrorIs(t, os.Remove(name), syscall.EPERM)
	}
	require.ErrorIs(t, os.WriteFile(search+"/new", nil, 0o644), os.ErrPermission)

	copied := t.TempDir()
	run(t, "rsync", "-a", at, copied)
	require.Equal(t, run(t, "cat", prompts), run(t, "cat", copied+"/history/prompts.jsonl"))
	require.Empty(t, run(t, "rsync", "-ai", at, copied), "a second run finds nothing new")
	require.Equal(t, before, statListing(t, dir), "SOURCE was touched")
}

// TestHistoryComesAndGoes: the directory is there always, and has in it what SOURCE has now.
func TestHistoryComesAndGoes(t *testing.T) {
	t.Parallel()
	onceIsEnough(t)
	dir := t.TempDir()
	database := filepath.Join(dir, "history.db")
	m := mountForTest(t, dir)
	prompts := m.path("history", "prompts.jsonl")
	empty := func() {
		t.Helper()
		require.Empty(t, run(t, "ls", "-A", m.path("history")))
		for _, name := range []string{prompts, m.path("history/search"), m.path("history/search/x")} {
			absent(t, name)
		}
	}
	empty()
	require.NoError(t, os.WriteFile(database, nil, 0o644)) // as the client makes it
	require.Empty(t, run(t, "cat", prompts))
	next, _ := newHistory(t)
	require.NoError(t, os.Rename(filepath.Join(next, "history.db"), database))
	require.Equal(t, "3\n", shell(t, `wc -l < "$1"`, prompts))
	require.Equal(t, "1\n", shell(t, `wc -l < "$1"`, m.path("history", "search", "red")))
	require.NoError(t, os.WriteFile(database, []byte("no database"), 0o644))
	_, err := os.ReadFile(prompts)
	require.ErrorIs(t, err, syscall.EIO)
	require.Contains(t, m.logged(), "file is not a database")
	require.NoError(t, os.Remove(database))
	require.Eventually(t, func() bool { // that a directory exists may be remembered for a second
		_, err := os.Lstat(m.path("history/search"))
		return os.IsNotExist(err)
	}, patience, 10*time.Millisecond)
	empty()
}

// TestHistoryIsFresh: a prompt that is stored is in what is read next; whatever the client does, the files are its own.
func TestHistoryIsFresh(t *testing.T) {
	t.Parallel()
	dir, database := newHistory(t)
	m := mountForTest(t, dir)
	history(t, program("history_beside.py"), database, m.path("history"), fmt.Sprint(sized(40, 15)))
}

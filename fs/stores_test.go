package fs_test

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/testdata"
)

// The agent directories that the tests mount.

// agent is an agent directory of a test.
type agent struct {
	t   testing.TB
	dir string
}

// newAgent makes an agent directory with an empty folder sessions/p.
func newAgent(t testing.TB) agent {
	return agentIn(t, t.TempDir())
}

// agentIn makes the agent directory of a home directory.
func agentIn(t testing.TB, home string) agent {
	a := agent{t: t, dir: filepath.Join(home, ".omp/agent")}
	require.NoError(t, os.MkdirAll(a.path(""), 0o755))
	return a
}

// path is a path in sessions/p.
func (a agent) path(name string) string { return filepath.Join(a.dir, "sessions", "p", name) }

// write makes or overwrites sessions/p/<name>.jsonl.
func (a agent) write(name string, content ...string) {
	require.NoError(a.t, os.WriteFile(a.path(name+".jsonl"), []byte(strings.Join(content, "")), 0o644))
}

// replace renames a new file over sessions/p/<name>.jsonl, as the client's rewrites do.
func (a agent) replace(name string, content ...string) {
	temporary := a.path("." + name + ".jsonl.0123abcd.tmp")
	require.NoError(a.t, os.WriteFile(temporary, []byte(strings.Join(content, "")), 0o644))
	require.NoError(a.t, os.Rename(temporary, a.path(name+".jsonl")))
}

// add appends to sessions/p/<name>.jsonl.
func (a agent) add(name string, content ...string) { grow(a.t, a.path(name+".jsonl"), content...) }

// grow appends to a file.
func grow(t testing.TB, file string, content ...string) {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	defer f.Close()
	_, err = f.WriteString(strings.Join(content, ""))
	require.NoError(t, err)
}

// header is the first line of a session.
func header(id string) string {
	return fmt.Sprintf(`{"type":"session","version":3,"id":"%s","timestamp":"2026-02-16T10:20:30.000Z","cwd":"/home/dev/project"}`, id) + "\n"
}

// entry is a line of a session: a user message with a text, at second n. An empty parent is none.
func entry(n int, id, parent, text string) string {
	if parent == "" {
		parent = "null"
	} else {
		parent = `"` + parent + `"`
	}
	at := time.Date(2026, 2, 16, 11, 0, n, 0, time.UTC)
	return fmt.Sprintf(`{"type":"message","id":"%s","parentId":%s,"timestamp":"%s","mark":"%s","message":{"role":"user","content":"%s","timestamp":%d}}`,
		id, parent, at.Format("2006-01-02T15:04:05.000Z"), mark(n), text, at.UnixMilli()) + "\n"
}

// mark is found in the content of entry n once, outside its message, and so in no context.
func mark(n int) string { return fmt.Sprintf("MARK%08d", n) }

// entryID is the id of entry n in the generated sessions.
func entryID(n int) string { return fmt.Sprintf("%08x", n) }

// unpack copies a directory tree to a new directory.
func unpack(t testing.TB, from fs.FS) string {
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, from))
	return dir
}

// demo returns a copy of the sample store.
func demo(t testing.TB) string { return unpack(t, testdata.Demo()) }

// The sizes of the large stores, as promised; those of a usual run are smaller.
const (
	bigEntries  = 20_000
	bigLine     = 12_500 // 250 MB in all
	tipsCount   = 400
	tipsEntries = 3_500
	longLine    = 13 << 20
)

// raceEnabled reports whether the race detector is on, which takes memory and time of its own.
var raceEnabled = func() bool {
	info, _ := debug.ReadBuildInfo()
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}()

// full reports whether stores are to have the sizes that the documents promise. Not under the race detector, under
// which that takes many minutes and finds no more races.
func full() bool { return os.Getenv("SESSIONFS_TEST_FULL") == "1" && !raceEnabled }

// fullOnly skips a test that takes long, and is of a size or a program that the usual run has less of.
func fullOnly(t testing.TB) {
	if !full() {
		t.Skip("SESSIONFS_TEST_FULL=1 runs it, without the race detector")
	}
}

// onceIsEnough skips a test in the runs that repeat the others on one processor and as an ordinary user (-short): what
// it looks at depends on neither, and it takes its time.
func onceIsEnough(t testing.TB) {
	if testing.Short() {
		t.Skip("it is the same in every run, and -short")
	}
}

// notUnderRace skips a test that does one thing after the other, or writes up to a limit of the mount. The race detector
// makes that take long; scripts/test runs it without.
func notUnderRace(t testing.TB) {
	if raceEnabled {
		t.Skip("with the race detector it takes long")
	}
}

// sized is the first number at full size, else the second.
func sized(atFull, usual int) int {
	if full() {
		return atFull
	}
	return usual
}

// scaled is n, or a hundredth where it is not at full size.
func scaled(n int) int { return sized(n, n/100) }

// bigStore is the directory of big, once that was called.
var bigStore string

// makeBig makes bigStore.
var makeBig = sync.OnceValue(func() (err error) {
	bigStore, err = os.MkdirTemp("", "sessionfs-big")
	if err != nil {
		return err
	}
	return writeBig(filepath.Join(bigStore, "sessions", "p"))
})

// big returns the agent directory with the big sessions, made once in a run: chain, fan, tips and line.
func big(t testing.TB) string {
	require.NoError(t, makeBig())
	return bigStore
}

// bigSessions are the sessions of the big store: how many entries each has, and what its lines are.
var bigSessions = map[string]struct {
	entries func() int
	line    func(n int) string
}{
	"chain": {func() int { return scaled(bigEntries) }, func(n int) string {
		return entry(n, entryID(n), before(n, n-1), strings.Repeat("etaoin shrdlu ", bigLine/14))
	}},
	"fan": {func() int { return scaled(bigEntries) + 1 }, func(n int) string {
		return entry(n, entryID(n), before(n, 0), "one of many")
	}},
	"tips": {func() int { return scaled(tipsEntries) }, func(n int) string {
		tips := scaled(tipsCount)
		if n <= tips { // a trunk, and a branch from each of its entries
			return entry(n, entryID(n), before(n, n-1), "the trunk")
		}
		return entry(n, entryID(n), entryID(n-tips), "a branch")
	}},
	"line": {func() int { return 3 }, func(n int) string {
		return entry(n, entryID(n), before(n, n-1), strings.Repeat("0123456789abcde ", 1+n%2*longLine/16))
	}},
}

// before is the id of the entry that n hangs under; the first one is a root.
func before(n, parent int) string {
	if n == 0 {
		return ""
	}
	return entryID(parent)
}

// writeBig writes the big sessions into a directory.
func writeBig(dir string) error {
	err := os.MkdirAll(dir, 0o755)
	if err != nil {
		return err
	}
	for name, s := range bigSessions {
		f, err := os.Create(filepath.Join(dir, name+".jsonl"))
		if err != nil {
			return err
		}
		w := bufio.NewWriterSize(f, 1<<20)
		_, _ = w.WriteString(header(name)) // Flush returns the first error
		for n := range s.entries() {
			_, _ = w.WriteString(s.line(n))
		}
		err = errors.Join(w.Flush(), f.Close())
		if err != nil {
			return err
		}
	}
	return nil
}

// read is what a file has.
func read(t testing.TB, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return text
}

// readLink is where a link leads.
func readLink(t testing.TB, name string) string {
	t.Helper()
	to, err := os.Readlink(name)
	require.NoError(t, err)
	return to
}

// writeFile writes a file, and makes its directory.
func writeFile(t testing.TB, file, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
}

// names lists a directory in the order of readdir.
func names(t testing.TB, dir string) []string {
	t.Helper()
	f, err := os.Open(dir)
	require.NoError(t, err)
	defer f.Close()
	list, err := f.Readdirnames(-1)
	require.NoError(t, err)
	return list
}

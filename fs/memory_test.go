package fs_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents/claude/claudetest"
	"sessionfs/sessioncore/budget"
)

// What clients make the daemon hold is bounded (docs/design.md section 7, Memory).

// tightMemory is a budget in which little goes.
func tightMemory(o *daemonOptions) { o.Memory = int64(sized(150<<20, budget.Min)) }

// TestLongLinesOfManySessions: sessions with long lines, and with long values on several lines, that are indexed at the
// same time do not fill the memory, and all are read.
func TestLongLinesOfManySessions(t *testing.T) {
	const sessions = 58
	a := newAgent(t)
	text := strings.Repeat("x", sized(30<<20, 2<<20))
	long := entry(0, "e0", "", text)
	loose := strings.Replace(long, text[:1<<20], text[:1<<19]+"\",\n\"more\":\""+text[:1<<19], 1)
	for n, line := range []string{long, loose} {
		a.write(fmt.Sprint("first", n), header("s"), line, entry(1, "e1", "e0", "y"))
	}
	for n := range sessions - 2 {
		file := a.path(fmt.Sprintf("first%d.jsonl", n%2))
		require.NoError(t, os.Link(file, filepath.Join(filepath.Dir(file), fmt.Sprintf("s%d.jsonl", n))))
	}
	m := mountForTest(t, a.dir, tightMemory)
	out := python(t, `
import os, sys, threading
project, seen = sys.argv[1], []
def look(s): seen.append(sorted(os.listdir(project + "/" + s + "/entries")))
threads = [threading.Thread(target=look, args=(s[:-6],)) for s in os.listdir(project) if s.endswith(".jsonl")]
for t in threads: t.start()
for t in threads: t.join()
print(len(seen), {" ".join(s) for s in seen})
`, m.path("sessions/p"))
	require.Equal(t, fmt.Sprintf("%d {'e0.json e1.json'}\n", sessions), out)
	// The pages of the program file, which are no memory of its own, are in the peak that the kernel tells.
	peak := m.procNumber("status", "VmHWM") - m.procNumber("status", "RssFile")
	t.Logf("at most %d kB were resident", peak)
	require.True(t, raceEnabled || peak < sized(150<<20, budget.Min)>>10)
}

// TestLongTextsOfAgents: sessions of other agents that end in a long prompt, and those with other long texts, do not fill the
// memory, nor do they keep it.
func TestLongTextsOfAgents(t *testing.T) {
	notUnderRace(t)
	const sessions = 12
	const first = `{"parentUuid":null,"cwd":"CWD","sessionId":"s%d","uuid":"u1","timestamp":"2026-03-30T07:13:41.000Z","type":"user",` +
		`"message":{"role":"user","content":"FIRST"}}` + "\n"
	const rest = `{"parentUuid":"u1","sessionId":"s","uuid":"u2","timestamp":"2026-03-30T07:13:42.000Z","type":"assistant","message":{"role":"assistant",` +
		`"id":"m","model":"claude-opus-4-5","content":[{"type":"tool_use","id":"c","name":"TOOL","input":{"command":"ls"}}],"usage":{"output_tokens":2}}}` + "\n" +
		`{"parentUuid":"u2","sessionId":"s","uuid":"u3","timestamp":"2026-03-30T07:13:43.000Z","type":"user","message":{"role":"user","content":[` +
		`{"type":"tool_result","tool_use_id":"c","content":"RESULT"}]}}` + "\n" +
		`{"type":"custom-title","customTitle":"TITLE","sessionId":"s"}` + "\n" +
		`{"parentUuid":"u3","sessionId":"s","uuid":"u4","timestamp":"2026-03-30T07:13:44.000Z","type":"user","message":{"role":"user","content":"LAST"}}` + "\n"
	text := strings.Repeat("x", sized(20<<20, 3<<20))
	for _, long := range []string{"FIRST", "RESULT", "TITLE", "TOOL", "CWD", "LAST"} {
		t.Run(long, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), ".claude")
			project := filepath.Join(dir, "projects/-w")
			require.NoError(t, os.MkdirAll(project, 0o700))
			fill := strings.NewReplacer(long, `short\n`+text, "CWD", "/w", "TITLE", "", "FIRST", "one", "RESULT", "two", "TOOL", "Bash", "LAST", "three")
			for n := range sessions {
				file := filepath.Join(project, fmt.Sprintf("s%d.jsonl", n))
				require.NoError(t, os.WriteFile(file, []byte(fill.Replace(fmt.Sprintf(first, n)+rest)), 0o600))
			}
			m := mountForTest(t, dir, func(o *daemonOptions) { o.Memory = budget.Min })
			require.Equal(t, sessions, strings.Count(string(read(t, m.path("index.jsonl"))), "\n"))
			shell(t, `ls "$1/recent"; cat "$1"/by-id/*/title "$1"/by-id/*/cwd "$1"/by-id/*/transcript.md | wc -c`, m.dir)
			require.Empty(t, read(t, m.path("last-error")))
			peak := m.procNumber("status", "VmHWM") - m.procNumber("status", "RssFile")
			require.Less(t, peak, 128<<10)
			kept := func() int { return m.procNumber("status", "VmRSS") }
			require.Eventually(t, func() bool { return kept() <= 72<<10 }, time.Minute, time.Second)
			t.Logf("at most %d kB were resident, %d are", peak, kept())
		})
	}
}

// TestWhatIsShownIsBounded: many open listings of a large directory, and many open files whose text is made, do not fill
// the memory; small ones can be read meanwhile, and large ones when the others are closed.
func TestWhatIsShownIsBounded(t *testing.T) {
	notUnderRace(t)
	a := newAgent(t)
	lines := []string{header("s")}
	for n := range 15000 {
		lines = append(lines, entry(n%60, entryID(n), "", "y"))
	}
	a.write("s", lines...)
	a.write("small", header("s"), entry(0, "e0", "", "y"))
	m := mountForTest(t, a.dir, func(o *daemonOptions) { o.Memory = budget.Min })
	out := python(t, program(t, "hoarder.py")+program(t, "hoard_project.py"), m.path("sessions/p"), m.path("last-error"))
	require.Equal(t, strings.Repeat("['ENOMEM', 'ok'] True ok True ok\n\n", 2), out)
	require.Contains(t, m.logged(), "-o memory=")
}

// TestManyForeignSessions reads many sessions of another agent with the least memory. Earlier
// conversions cause no refusal, also while the sessions grow.
func TestManyForeignSessions(t *testing.T) {
	notUnderRace(t)
	const sessions = 200
	dir := filepath.Join(t.TempDir(), ".claude")
	_, err := claudetest.Make(dir, claudetest.Spec{Sessions: sessions, Bytes: sessions * 120 << 10})
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(dir, "projects/*/*.jsonl"))
	require.NoError(t, err)
	require.Len(t, files, sessions)
	m := mountForTest(t, dir, func(o *daemonOptions) { o.Memory = budget.Min })
	for round := range 3 {
		for name, lines := range map[string]int{
			"usage.jsonl":               28,
			"lost.tsv":                  1,
			"index.jsonl":               sessions,
			"search/buffer/results.tsv": 1001,
		} {
			text := string(read(t, m.path(name)))
			require.GreaterOrEqual(t, strings.Count(text, "\n"), lines, "%s, round %d", name, round)
		}
		shell(t, `cat "$1"/by-id/*/transcript.md | wc -c`, m.dir)
		require.Empty(t, read(t, m.path("last-error")))
		for i := range sessions / 10 {
			grow(t, files[i*10], fmt.Sprintf(`{"parentUuid":null,"isSidechain":false,"cwd":"/w","sessionId":"s","uuid":"u%d",`+
				`"timestamp":"2027-03-01T10:00:%02d.000Z","type":"user","message":{"role":"user","content":"more"}}`+"\n", round, round))
		}
	}
	require.Less(t, m.procNumber("status", "VmHWM"), 150<<10)
}

// TestNamesAndCrawlersAreBounded: names that are looked up, documents that stay open and programs that walk everything, all at
// the same time, take no more memory than the bound and what the collector leaves over, and give it back when they end.
func TestNamesAndCrawlersAreBounded(t *testing.T) {
	fullOnly(t)
	const programs, rounds, sessions, entries = 24, 320, 8, 1500
	const most, left = (150*13/10 + 40) << 10, 40 << 10 // kB in all, and kB more than before
	a := newAgent(t)
	for s := range sessions {
		lines := []string{header(fmt.Sprint("s", s))}
		for n := range entries {
			lines = append(lines, entry(n%60, entryID(n), before(n, n-1), strings.Repeat("etaoin shrdlu ", 100)))
		}
		a.write(fmt.Sprint("s", s), lines...)
	}
	m := mountForTest(t, a.dir, tightMemory, func(o *daemonOptions) { o.NodesRest = 5 * time.Second })
	run(t, "sh", "-c", `cat "$1"/*/context.json "$1"/*/leaf >/dev/null`, "sh", m.path("sessions/p")) // all is indexed
	before := m.procNumber("status", "VmRSS")

	documents := []string{"context.json", "transcript.md", "branches.tsv", "branches/current/entries.jsonl"}
	crawlers := []string{`find "$1" -ls`, `grep -r MARK "$1"`, `tar -cf - "$1" | cat`, `du -a "$1"`, `cat "$1"/entries/*`}
	mix := func(p int) {
		var open [4]*os.File
		for n := range rounds {
			for i := range 20 {
				_, err := os.Lstat(m.path("search", fmt.Sprintf("q%dx%d lorem%d role:user", p, n, i), "none"))
				assert.ErrorIs(t, err, os.ErrNotExist)
			}
			for i := range 10 {
				dir := fmt.Sprintf("/%d/%d", p, n)
				_, err := os.Lstat(m.path("by-file", strings.Repeat(dir, 1+i%3), strconv.Itoa(i)))
				assert.NoError(t, err)
			}
			session, was := m.session(fmt.Sprint("s", (p+n)%sessions)), open[n%len(open)]
			f, err := os.Open(filepath.Join(session, documents[n/7%len(documents)]))
			assert.True(t, err == nil || errors.Is(err, syscall.ENOMEM), "%v", err)
			open[n%len(open)] = f
			_ = was.Close() // nothing there: an error
			if n%80 == p {
				_, _ = exec.Command("sh", "-c", crawlers[p%len(crawlers)], "sh", session).Output()
			}
		}
		for _, f := range open {
			_ = f.Close()
		}
	}
	var running sync.WaitGroup
	for p := range programs {
		running.Go(func() { mix(p) })
	}
	running.Wait()
	peak := m.procNumber("status", "VmHWM")
	t.Logf("%d kB were resident first, at most %d, %d at the end", before, peak, m.procNumber("status", "VmRSS"))
	require.LessOrEqual(t, peak, most)
	require.Eventually(t, func() bool { return m.procNumber("status", "VmRSS") <= before+left }, 3*patience, time.Second)
}

// TestRefusalIsNotLostInShortWrite: the kernel divides a long write into requests and says nothing of one that fails
// after another; the program writes the rest again, and must be told then.
func TestRefusalIsNotLostInShortWrite(t *testing.T) {
	w := newWriting(t)
	out := python(t, program(t, "hoarder.py")+program(t, "short_write.py"), w.in("append"))
	require.Equal(t, "EINVAL\nEINVAL\n", out)
}

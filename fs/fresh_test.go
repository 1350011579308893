package fs_test

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What the mount shows is what is on disk at that moment (docs/design.md section 6). A long-lived child does
// a change and looks at once, a thousand times at full size.

func freshRounds() int { return sized(1_000, 120) }

// freshLibrary is what the Python programs share: arguments are the raw file on disk, the session's
// directory in the mount, the number of rounds.
var freshLibrary = program("fresh.py")

var freshPrograms = map[string]string{
	"append": `
replace(header() + entry("e", None, "first"))
ids = ["e"]
for round in range(rounds):
    id = "e%d" % round
    with open(raw, "a") as f: f.write(entry(id, ids[-1] if round % 50 else None, "text %d" % round))
    ids.append(id)
    look(ids, "text %d" % round)
    same("the entry", entry(id, ids[-2] if round % 50 else None, "text %d" % round), read("entries/%s.json" % id))
`,
	"replace": `
for round in range(rounds):
    ids = ["same", "n%d" % (round % 7)] # often of the same size
    first, last = "x" * (round % 11 * 900) + str(round), "text %d" % round
    replace(header() + entry("same", None, first) + entry(ids[1], "same", last))
    same("the rewritten entry", entry("same", None, first), read("entries/same.json"))
    same("through tree/", entry(ids[1], "same", last), read("tree/same/%s/entry.json" % ids[1]))
    look(ids, last)
`,
	"overwritten in place": `
for round in range(rounds): # as an editor does that keeps the file
    first, last = "y" * (round % 5 * 300) + str(round), "text %d" % round
    with open(raw, "w") as f: f.write(header() + entry("same", None, first) + entry("n", "same", last))
    same("the rewritten entry", entry("same", None, first), read("entries/same.json"))
    look(["same", "n"], last)
`,
}

func TestFreshness(t *testing.T) {
	for name, program := range freshPrograms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAgent(t)
			a.write("fresh", header("fresh"))
			m := mountForTest(t, a.dir)
			program := freshLibrary + program + `print(round + 1)`
			rounds := run(t, "python3", "-c", program, a.path("fresh.jsonl"), m.session("fresh"), fmt.Sprint(freshRounds()))
			require.Equal(t, fmt.Sprintln(freshRounds()), rounds)
		})
	}
}

// TestOpenShowsOneVersion: what was opened before a change shows the old version, whole, or says that it is gone where nothing
// keeps the old bytes. The raw file is what it is, byte for byte.
func TestOpenShowsOneVersion(t *testing.T) {
	body := strings.Repeat("old ", 100_000) // more than a page or a read
	old := header("s") + entry(0, "e0", "", body) + entry(1, "e1", "e0", body)
	changes := map[string]func(a agent){
		"replaced":  func(a agent) { a.replace("s", header("s"), entry(0, "e0", "", "new")) },
		"appended":  func(a agent) { a.add("s", entry(2, "e2", "e1", "new")) },
		"removed":   func(a agent) { require.NoError(t, os.Remove(a.path("s.jsonl"))) },
		"truncated": func(a agent) { require.NoError(t, os.Truncate(a.path("s.jsonl"), 1_000)) },
		"overwritten": func(a agent) {
			a.write("s", header("s"), entry(0, "e0", "", strings.Repeat("new ", 100_000)), entry(1, "e1", "e0", body))
		},
	}
	a := newAgent(t)
	m := mountForTest(t, a.dir)
	for name, change := range changes {
		for _, file := range []string{"s/context.json", "s/entries/e0.json", "s/header.json", "s.jsonl"} {
			inPlace := name == "truncated" || name == "overwritten"
			if file == "s.jsonl" && (inPlace || name == "appended") {
				continue
			}
			require.NoError(t, os.RemoveAll(a.path("s.jsonl")))
			a.write("s", old)
			want := string(read(t, m.path("sessions/p", file)))
			f, err := os.Open(m.path("sessions/p", file))
			require.NoError(t, err)
			start := make([]byte, 10)
			_, err = io.ReadFull(f, start)
			require.NoError(t, err)
			change(a)
			_, _ = os.ReadFile(m.path("sessions/p", file)) // another looks at the new version
			rest, err := io.ReadAll(f)
			require.NoError(t, f.Close())
			if err != nil {
				require.ErrorIs(t, err, syscall.ESTALE, "%s", file)
				require.True(t, inPlace || name == "removed" && file == "s.jsonl", "%s: old content is still there", file)
			} else if name != "overwritten" { // with the same size, nothing keeps the old bytes
				require.True(t, want == string(start)+string(rest), "%s, %s: %d bytes, then %d", name, file, len(want), 10+len(rest))
			}
		}
	}
}

// TestSessionEnds: a file that is removed, or no session any more, has no directory, at once.
func TestSessionEnds(t *testing.T) {
	onceIsEnough(t)
	ends := map[string]func(a agent){
		"removed":          func(a agent) { require.NoError(t, os.Remove(a.path("s.jsonl"))) },
		"truncated":        func(a agent) { require.NoError(t, os.Truncate(a.path("s.jsonl"), 0)) },
		"no session":       func(a agent) { a.write("s", "not a session\n") },
		"another in place": func(a agent) { a.replace("s", `{"type":"message","id":"x"}`+"\n") },
		"a directory": func(a agent) {
			require.NoError(t, os.Remove(a.path("s.jsonl")))
			require.NoError(t, os.Mkdir(a.path("s.jsonl"), 0o755))
		},
	}
	looks := []string{"cat $1/leaf", "cat $1/context.json", "cat $1/entries/e0.json", "ls $1/entries", "cat $1/tree/e0/entry.json",
		"readlink -e $1/leaf", "stat $1/header.json", "ls -d $1/entries/e0.json", "ls $1/tree", "ls -d $1/."}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAgent(t)
			m := mountForTest(t, a.dir)
			for _, look := range looks {
				require.NoError(t, os.RemoveAll(a.path("s.jsonl")))
				a.replace("s", header("s"), entry(0, "e0", "", "first"))
				require.Equal(t, "entries/e0.json\n", run(t, "readlink", m.session("s", "leaf")))
				shell(t, "find $1 >/dev/null; "+look+" >/dev/null", m.session("s")) // the kernel knows it all
				end(a)
				out, problem, err := tool(t, "bash", "-c", look, "bash", m.session("s"))
				for waited := time.Duration(0); strings.HasPrefix(look, "ls -d") && err == nil && waited < patience; waited += 20 * time.Millisecond {
					time.Sleep(20 * time.Millisecond) // that a directory exists, and a bare stat, may be remembered for a second
					out, problem, err = tool(t, "bash", "-c", look, "bash", m.session("s"))
				}
				require.Error(t, err, "%s: %s", look, out)
				require.NotContains(t, problem, "Stale", "ENOENT, since nothing of it was open")
			}
		})
	}
}

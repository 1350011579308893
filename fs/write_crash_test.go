package fs_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// crashesEnv says how often TestCrashes kills the daemon.
const crashesEnv = "SESSIONFS_TEST_CRASHES"

// crashes is how often: 200 times are for a long run; here a part of that finds the same.
func crashes(t testing.TB) int {
	if n := os.Getenv(crashesEnv); n != "" {
		count, err := strconv.Atoi(n)
		require.NoError(t, err)
		return count
	}
	return sized(50, 10)
}

// crashWriter appends, branches and labels until the mount is gone. Into its record it writes what the lines that it is about
// to make say (summary), and "ok" when they were acknowledged.
const crashWriter = `
import json, os, random, sys
d, record, round = sys.argv[1], open(sys.argv[2], "a"), sys.argv[3]
rnd = random.Random(int(round))
def note(what):
    record.write(json.dumps(what) + "\n"); record.flush()
ids, n = [i[:-5] for i in os.listdir(d + "/entries")], 0
fd = os.open(d + "/append", os.O_RDWR)
def leaf():
    target = os.readlink(d + "/leaf")
    return "null" if target == "tree" else target[8:-5]
try:
    at = leaf()
    while True:
        n += 1
        kind = rnd.choice(["append"] * 5 + ["leaf"] * 2 + ["label"] * 2 + ["reset", "batch"])
        if kind in ("append", "batch"):
            new = ["r%s-%d-%d" % (round, n, i) for i in range(1 if kind == "append" else 4)]
            size = rnd.choice([10, 300, 5000, 20000, 200000])
            note(["custom %s under %s size %d" % (id, under, size) for id, under in zip(new, [at] + new)])
            text = "".join('{"type":"custom","customType":"t","id":"%s","data":"%s"}\n' % (i, "x" * size) for i in new).encode()
            assert os.write(fd, text) == len(text)
            note("ok")
            os.read(fd, 1000)
            ids += new
            at = new[-1]
        elif kind == "label":
            target, label = rnd.choice(ids), "L%s-%d" % (round, n)
            note(["label %s of %s under %s" % (label, target, at)])
            with open(d + "/labels", "w", buffering=1) as f: f.write("%s %s\n" % (target, label))
            note("ok")
            at = leaf()
        else:
            target = rnd.choice(ids) if kind == "leaf" else "null"
            if target == at: continue
            note(["leaf " + target])
            os.symlink("tree" if target == "null" else "entries/%s.json" % target, d + "/tmp")
            os.replace(d + "/tmp", d + "/leaf")
            note("ok")
            at = target
except OSError as e:
    pass
`

// parseRecord reads the record of a round: what the lines of each write that was acknowledged say, and of the one in flight.
func parseRecord(t testing.TB, text string) (acked [][]string, inFlight []string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if line == "\"ok\"\n" {
			acked, inFlight = append(acked, inFlight), nil
			continue
		}
		require.NoError(t, json.Unmarshal([]byte(line), &inFlight), "%q", line)
	}
	return acked, inFlight
}

// summary is what a line says, or "" for one that cannot be read.
func summary(line string) string {
	var e struct {
		Type, CustomType, ID, TargetID, Label string
		ParentID                              *string
		Data                                  any
	}
	if json.Unmarshal([]byte(line), &e) != nil {
		return ""
	}
	parent := record{ParentID: e.ParentID}.parent()
	if e.ParentID == nil {
		parent = "null"
	}
	data, _ := e.Data.(string)
	switch {
	case e.CustomType == "sessionfs/leaf":
		if target := e.Data.(map[string]any)["targetId"]; target != nil && target != parent || target == nil && parent != "null" {
			return "a wrong parent"
		}
		return "leaf " + parent
	case e.Type == "custom":
		return fmt.Sprintf("custom %s under %s size %d", e.ID, parent, len(data))
	case e.Type == "label":
		return fmt.Sprintf("label %s of %s under %s", e.Label, e.TargetID, parent)
	}
	return "another line"
}

// TestCrashes: kill -9 of the daemon at random moments, while a program appends, branches and labels:
// what was acknowledged is in the file, in order, once; what was not is there whole or not at all, but for
// a torn end, which the next write leaves behind on a line of its own.
func TestCrashes(t *testing.T) {
	a := newAgent(t)
	base := header("s") + strings.Join(writtenEntries, "")
	a.write("s", base)
	size, acked, lost, torn := len(base), 0, 0, 0
	rnd := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	rounds := crashes(t)
	for round := range rounds {
		record := filepath.Join(t.TempDir(), "record")
		m := mountForTest(t, a.dir)
		if round > 0 && round%10 == 0 { // a new, smaller session now and then, so that a round stays short
			a.write("s", base)
			size = len(base)
		}
		c := exec.Command("python3", "-c", crashWriter, m.session("s"), record, fmt.Sprint(round))
		c.Stderr = os.Stderr
		require.NoError(t, c.Start())
		// The kill comes at once or, in every second round, when the writer is well on its way, however slow the machine.
		require.Eventually(t, func() bool {
			text, _ := os.ReadFile(record)
			return strings.Count(string(text), "\n") > 5*(round%2)
		}, patience, time.Millisecond)
		time.Sleep(time.Duration(rnd.IntN(60_000)) * time.Microsecond)
		m.crash()
		require.NoError(t, c.Wait(), "the writer of round %d", round)
		done, inFlight := parseRecord(t, string(read(t, record)))
		now := a.raw("s")
		seen := []string{} // and want: never nil, which Equal tells from empty
		tail := now[size:]
		if at := strings.LastIndexByte(tail, '\n') + 1; at < len(tail) {
			torn++
			require.NotNil(t, inFlight, "round %d: torn, and all was acknowledged", round)
			tail = tail[:at]
		}
		for line := range strings.Lines(tail) {
			if s := summary(line); s != "" {
				seen = append(seen, s)
			} else { // the rest of the torn end of the round before
				require.Empty(t, seen, "round %d: a torn line among whole ones: %.200q", round, line)
			}
		}
		want := append([]string{}, slices.Concat(done...)...)
		require.GreaterOrEqual(t, len(seen), len(want), "round %d: acknowledged, and not there", round)
		require.Equal(t, want, seen[:len(want)], "round %d", round)
		if more := seen[len(want):]; len(more) > 0 {
			require.NotNil(t, inFlight, "round %d: nobody wrote %q", round, more)
			require.LessOrEqual(t, len(more), len(inFlight), "round %d", round)
			require.Equal(t, inFlight[:len(more)], more, "round %d", round)
		} else if inFlight != nil {
			lost++
		}
		acked += len(done)
		size = len(now)
		if round%5 == 0 {
			checkReadable(t, a)
			size = len(a.raw("s"))
		}
	}
	checkReadable(t, a)
	t.Logf("%d crashes: %d writes acknowledged, all there; %d in flight were not written, %d left a torn end", rounds, acked, lost, torn)
	require.Greater(t, acked, rounds, "the writer came to do something")
	left := run(t, "find", a.path(""), "-name", ".*.tmp")
	require.Empty(t, left, "no temporary files are left")
}

// crash kills the daemon and removes what is left of the mount.
func (m *mount) crash() {
	_ = m.cmd.Process.Kill()
	<-m.ended
	if unix.Unmount(m.dir, unix.MNT_DETACH) != nil {
		_ = exec.Command("fusermount3", "-u", "-z", m.dir).Run()
	}
}

// checkReadable: the file reads, and a write works at once, also where a crash left its lock.
func checkReadable(t testing.TB, a agent) {
	t.Helper()
	m := mountForTest(t, a.dir)
	defer m.stop()
	w := &writing{a, m}
	before := w.raw("s")
	id := ask(t, w.in("append"), `{"type":"custom","customType":"check"}`)
	require.Equal(t, "entries/"+id+".json", w.leaf())
	rest := w.raw("s")[len(before):]
	require.Contains(t, rest, id)
	whole := map[string]int{}
	for line := range strings.Lines(w.raw("s")) {
		var e struct{ ID string }
		if json.Unmarshal([]byte(line), &e) == nil {
			whole[e.ID]++
		}
	}
	for id, n := range whole {
		require.Equal(t, 1, n, "%s is doubled", id)
	}
	require.Len(t, names(t, w.in("entries")), len(whole)-1)
	require.NotEmpty(t, w.read("context.json"))
	require.Equal(t, "s.jsonl\n", run(t, "ls", "-A", w.path("")), "no lock is left")
}

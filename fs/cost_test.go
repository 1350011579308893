package fs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// procNumber reads a number from a file of the daemon's /proc directory.
func (m *mount) procNumber(file, key string) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", m.cmd.Process.Pid, file))
	require.NoError(m.t, err)
	found := regexp.MustCompile(`(?m)^` + key + `:\s*([0-9]+)`).FindSubmatch(text)
	require.NotNil(m.t, found, "%s", text)
	n, err := strconv.Atoi(string(found[1]))
	require.NoError(m.t, err)
	return n
}

// maxResident is how much memory of its own the daemon may take, in kB. The pages of the program's file, about 12 MB,
// are not among them: the kernel takes them back when it wants to.
const maxResident = 60_000

// TestMemory: the daemon holds no content: after ls entries and cat context.json on the biggest session it
// is still small, and also after all of it was read.
func TestMemory(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector takes memory of its own")
	}
	onceIsEnough(t)
	m := mountForTest(t, big(t))
	for _, look := range []string{`ls "$1/entries" | wc -l`, `cat "$1/context.json" | wc -c`, `cat "$1"/entries/*.json | wc -c`, `cat "$1/leaf" | wc -c`} {
		require.NotEqual(t, "0\n", shell(t, look, m.session("chain")))
		resident := m.procNumber("status", "RssAnon")
		t.Logf("%-30s %d kB", look, resident)
		most := maxResident
		if strings.Contains(look, "*") || strings.Contains(look, "leaf") {
			most += 20_000 // for the 20,000 inodes that the kernel knows from here on, 1 KB each
		}
		require.Less(t, resident, most, look)
	}
}

// TestMountingReadsNothing: it costs the same for one session and for thousands, and so does listing the mount.
func TestMountingReadsNothing(t *testing.T) {
	dir := scratch(t)
	cost := func() [2]int {
		m := mountForTest(t, dir)
		require.Contains(t, run(t, "ls", m.dir), "recent")
		return [2]int{m.procNumber("io", "rchar"), m.procNumber("io", "syscr")}
	}
	p := filepath.Join(dir, "sessions", "p")
	require.NoError(t, os.MkdirAll(p, 0o755))
	write := func(n int) {
		require.NoError(t, os.WriteFile(filepath.Join(p, strconv.Itoa(n)+".jsonl"), []byte(header("s")), 0o644))
	}
	write(0)
	one := cost()
	for n := 1; n < scaled(10_000); n++ {
		write(n)
	}
	many := cost()
	t.Logf("bytes and reads: %d for one session, %d for %d", one, many, scaled(10_000))
	require.InDelta(t, one[0], many[0], 20_000, "bytes read while mounting")
	require.InDelta(t, one[1], many[1], 60, "reads while mounting")
}

// TestChildrenCost: who lists a session's directory with all attributes does not have all sessions read. Who lists
// children/ does, once: a crawler that lists those of all sessions has no more read.
func TestChildrenCost(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	const sessions = 400
	a.write("top", header("top"))
	for i := range sessions {
		a.write(fmt.Sprint("s", i), strings.Replace(header(fmt.Sprint("s", i)), `"cwd"`, `"parentSession":"top","cwd"`, 1))
	}
	time.Sleep(30 * time.Millisecond) // until the clock of the files has ticked
	m := mountForTest(t, a.dir)
	cost := func(args ...string) int {
		before := m.procNumber("io", "syscr")
		run(t, args[0], args[1:]...)
		return m.procNumber("io", "syscr") - before
	}
	require.Less(t, cost("ls", "-l", m.session("top")), sessions/2)
	require.Greater(t, cost("ls", m.session("top", "children")), sessions)
	require.Less(t, cost("ls", m.session("s1", "children"), m.session("s2", "children"), m.session("s3", "children")), sessions/2)
	require.Len(t, names(t, m.session("top", "children")), sessions)
}

package fs_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestNodesAreGivenBack: however much is crawled, few nodes stay, and nobody who uses one notices: open files
// and directories, a working directory, links that wait to become leaf.
func TestNodesAreGivenBack(t *testing.T) {
	t.Parallel()
	onceIsEnough(t)
	const sessions = 5
	limit, entries := sized(1000, 375), sized(400, 150)
	a := newAgent(t)
	for _, name := range strings.Split("abcde", "") {
		lines := []string{header(name)}
		for n := range entries {
			lines = append(lines, entry(n, entryID(n), before(n, n-1), name+" "+strconv.Itoa(n)))
		}
		a.write(name, lines...)
	}
	m := mountForTest(t, a.dir, func(c *mountConfig) { c.options.MaxNodes = limit })
	run(t, "python3", "-c", `
import json, os, subprocess, sys
mount, entries, limit, a = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), os.path.join(sys.argv[1], "sessions/p/a")
def text(b): return json.loads(b)["message"]["content"]
os.chdir(os.path.join(a, "tree"))
names = sorted(os.listdir(os.path.join(a, "entries")))
files = {n: os.open(os.path.join(a, "entries", n), os.O_RDONLY) for n in names[::40]}
want = {n: os.pread(fd, 1 << 16, 0) for n, fd in files.items()}
stream = os.scandir(os.path.join(a, "entries"))
listed = [next(stream).name for _ in range(3)]
os.symlink("entries/" + names[0], os.path.join(a, "CuXXXXXX"))
for round in range(3):
    found = subprocess.run(["find", mount, "-type", "f", "-path", "*/entries/*", "-exec", "cat", "{}", "+"], check=True, stdout=subprocess.PIPE).stdout
    assert sorted(map(text, found.splitlines())) == sorted("%s %d" % (s, n) for s in "abcde" for n in range(entries)), "content"
    subprocess.run(["find", mount, "-printf", "%s %t"], check=True, stdout=subprocess.DEVNULL)
    for n, fd in files.items():
        assert os.pread(fd, 1 << 16, 0) == want[n] and os.fstat(fd).st_size == len(want[n]), n
for n in range(12 * limit): # names that are not there, for which the kernel keeps the directory where they were looked for
    assert not os.path.lexists(os.path.join(mount, "search/q%d/%d.git" % (n, n)))
assert os.getcwd() == os.path.join(a, "tree") and os.listdir("."), "working directory"
listed += [e.name for e in stream]
assert sorted(listed) == names, "listing"
os.rename(os.path.join(a, "CuXXXXXX"), os.path.join(a, "leaf"))
assert os.readlink(os.path.join(a, "leaf")) == "entries/" + names[0], "leaf"
`, m.dir, strconv.Itoa(entries), strconv.Itoa(limit))
	given := regexp.MustCompile(`nodes were given back" before=(\d+) left=(\d+)`).FindAllStringSubmatch(m.logged(), -1)
	require.NotEmpty(t, given, "nodes were never given back")
	for _, g := range given {
		left, err := strconv.Atoi(g[2])
		require.NoError(t, err)
		require.Less(t, left, 4*limit, "of the 3 times %d nodes of all entries, and %d queries", sessions*entries, 12*limit)
	}
}

// TestNodesAreGivenBackAtRest: few nodes stay when nobody looks any more.
func TestNodesAreGivenBackAtRest(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	a.write("s", header("s"), entry(0, "e0", "", "y"))
	m := mountForTest(t, a.dir, func(c *mountConfig) { c.options.MaxNodes, c.options.NodesRest = 1<<16, time.Second })
	run(t, "sh", "-c", `for n in $(seq 200); do test -d "$1/by-file/$n/x/y" || exit; done`, "sh", m.dir)
	for _, before := range []string{`6\d\d`, `\d\d?`} { // what was given back is counted when there is something again
		require.Eventually(t, func() bool {
			return regexp.MustCompile(`nodes were given back" before=` + before + ` `).MatchString(m.logged())
		}, 20*time.Second, 50*time.Millisecond)
		run(t, "test", "-d", m.path("by-file/again"))
	}
}

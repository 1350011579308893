package fs_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
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
	limit := sized(1000, 375)
	entries := sized(400, 150)
	a := newAgent(t)
	for _, name := range strings.Split("abcde", "") {
		lines := []string{header(name)}
		for n := range entries {
			lines = append(lines, entry(n, entryID(n), before(n, n-1), name+" "+strconv.Itoa(n)))
		}
		a.write(name, lines...)
	}
	m := mountForTest(t, a.dir, func(o *daemonOptions) { o.MaxNodes = limit })
	python(t, program(t, "prune.py"), m.dir, strconv.Itoa(entries), strconv.Itoa(limit))
	counts := func() (left []int) {
		for _, g := range regexp.MustCompile(`nodes were given back" before=\d+ left=(\d+)`).FindAllStringSubmatch(m.logged(), -1) {
			n, err := strconv.Atoi(g[1])
			require.NoError(t, err)
			left = append(left, n)
		}
		return left
	}
	during := counts()
	require.NotEmpty(t, during, "nodes were never given back")
	slices.Sort(during) // on a busy machine some counts come late
	const about = "of the 3 times %d nodes of all entries, and %d queries"
	require.Less(t, during[len(during)/2], 4*limit, about, sessions*entries, 12*limit)
	for n := 0; ; n++ { // the nodes are counted when there are more
		if now := counts(); len(now) > len(during) && now[len(now)-1] < limit {
			break
		}
		require.Less(t, n, 100*limit, about, sessions*entries, 12*limit)
		_, err := os.Lstat(m.path("search", fmt.Sprint("later", n)))
		require.NoError(t, err)
	}
}

// TestNodesAreGivenBackAtRest: few nodes stay when nobody looks any more.
func TestNodesAreGivenBackAtRest(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	a.write("s", header("s"), entry(0, "e0", "", "y"))
	m := mountForTest(t, a.dir, func(o *daemonOptions) { o.MaxNodes, o.NodesRest = 1<<16, time.Second })
	run(t, "sh", "-c", `for n in $(seq 200); do test -d "$1/by-file/$n/x/y" || exit; done`, "sh", m.dir)
	for _, before := range []string{`6\d\d`, `\d\d?`} { // what was given back is counted when there is something again
		require.Eventually(t, func() bool {
			return regexp.MustCompile(`nodes were given back" before=` + before + ` `).MatchString(m.logged())
		}, 20*time.Second, 50*time.Millisecond)
		run(t, "test", "-d", m.path("by-file/again"))
	}
}

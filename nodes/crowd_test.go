package nodes

import (
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/budget"
)

// TestNodesOfBudget: less memory has room for fewer nodes.
func TestNodesOfBudget(t *testing.T) {
	for size, want := range map[int64]int{budget.Min: 1 << 14, budget.Default: maxNodes, 1 << 40: maxNodes} {
		view := &View{Memory: budget.New(size)}
		NewRootDir(view, nil)
		require.Equal(t, want, view.crowd.limit, size)
	}
	view := &View{}
	NewRootDir(view, nil)
	require.Equal(t, maxNodes, view.crowd.limit, "no budget")
}

// TestMisses: names that are not there are taken from the kernel, but the last ones, to which the answer may be on its
// way; there is a bound.
func TestMisses(t *testing.T) {
	var c crowd
	c.init(maxNodes, atRest)
	for n := range missBatch + freshMisses - 1 {
		c.missed(nil, fmt.Sprint(n))
	}
	require.Empty(t, c.full, "not yet")
	c.missed(nil, "last")
	require.Len(t, c.full, 1, "Prune is woken")
	require.Len(t, c.takeMisses(), missBatch)
	require.Equal(t, "last", c.misses[freshMisses-1].name)
	require.Empty(t, c.takeMisses())
	for range 2 * maxMisses {
		c.missed(nil, "")
	}
	require.Len(t, c.misses, maxMisses)
}

// TestLookedUpNamesAreSmall: the node of a query, or of a file, has no more than its name: the kernel remembers many.
func TestLookedUpNamesAreSmall(t *testing.T) {
	const many = 500
	view := &View{Log: slog.New(slog.DiscardHandler), Memory: budget.New(budget.Min)}
	queries, files := &SearchDir{newAboutSessions(view, nil)}, &ByFileDir{newAboutSessions(view, nil)}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for _, dir := range []dirNode{queries, files} {
		before := heap()
		made := make([]fusefs.InodeEmbedder, many)
		for n := range made {
			found, err := dir.find(t.Context(), nil, item{name: fmt.Sprint(n, strings.Repeat(" word", 49)), number: unnumbered}, &fuse.Attr{})
			require.NoError(t, err)
			made[n] = found.make()
		}
		require.Less(t, (heap()-before)/many, uint64(1500))
		runtime.KeepAlive(made)
	}
}

package kernel

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/nodes"
	"sessionfs/sessioncore/budget"
)

// TestNodesOfBudget: less memory has room for fewer nodes.
func TestNodesOfBudget(t *testing.T) {
	for size, want := range map[int64]int{budget.Min: 1 << 14, budget.Default: maxNodes, 1 << 40: maxNodes} {
		door := New(nodes.NewRootDir(&nodes.View{Memory: budget.New(size)}, nil, nil))
		require.Equal(t, want, door.inodes.limit, size)
	}
	require.Equal(t, maxNodes, New(nodes.NewRootDir(&nodes.View{}, nil, nil)).inodes.limit, "no budget")
}

// TestMisses: names that are not there are taken from the kernel, but the last ones, to which the
// answer may be on its way; there is a bound.
func TestMisses(t *testing.T) {
	var c inodeLimit
	c.init(maxNodes, pruneRest)
	for n := range missBatch + freshMisses - 1 {
		c.addMiss(nil, fmt.Sprint(n))
	}
	require.Empty(t, c.full, "not yet")
	c.addMiss(nil, "last")
	require.Len(t, c.full, 1, "Prune is woken")
	require.Len(t, c.popMisses(), missBatch)
	require.Equal(t, "last", c.misses[freshMisses-1].name)
	require.Empty(t, c.popMisses())
	for range 2 * maxMisses {
		c.addMiss(nil, "")
	}
	require.Len(t, c.misses, maxMisses)
}

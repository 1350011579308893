package costs

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/budget"
)

// TestKeySet: a set has all added keys, however many they are, and few of them in the map.
func TestKeySet(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var set keySet
	known := map[uint64]bool{}
	for range 2000 {
		keys := make([]uint64, rng.IntN(100))
		for i := range keys {
			keys[i] = rng.Uint64N(150_000)
			known[keys[i]] = true
		}
		require.NoError(t, set.add(keys))
		require.Less(t, len(set.recent), max(leastRecent, len(set.sorted)/recentShare))
	}
	require.Len(t, known, len(set.sorted)+len(set.recent))
	for key := range uint64(150_000) {
		require.Equal(t, known[key], set.has(key), key)
	}
	set.sorted = make([]uint64, maxKeys)
	more := make([]uint64, maxKeys/recentShare)
	for i := range more {
		more[i] = uint64(i + 1)
	}
	require.ErrorIs(t, set.add(more), budget.ErrNoMemory)
}

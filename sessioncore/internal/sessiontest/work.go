package sessiontest

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/rawjson"
)

// Work is the work of a function, counted and not timed.
type Work struct {
	Scanned   int64 // bytes that scans of JSON passed over, each time that they did
	Allocated int64 // bytes of memory, which bound copies
	Objects   int64 // number of allocations: unlike Allocated it hardly depends on pools that a collection emptied
}

// WorkOf returns the work of a function, with that of all goroutines.
func WorkOf(do func()) Work {
	var before, after runtime.MemStats
	scanned := rawjson.CountWork()
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return Work{
		Scanned:   scanned(),
		Allocated: int64(after.TotalAlloc - before.TotalAlloc),
		Objects:   int64(after.Mallocs - before.Mallocs),
	}
}

// Sum returns the work as one number.
func (w Work) Sum() int64 { return w.Scanned + w.Allocated }

const (
	// maxGrowth is the growth of linear work between n and 4n.
	maxGrowth = 4.4
	// maxGrowthOfMemory is that of allocations, which slices and maps make in steps.
	maxGrowthOfMemory = 5
)

// Linear fails where the work of a function for 4n things is more than linear in that for n. The work
// is a count of calls, or of bytes that are read or scanned.
func Linear(t testing.TB, n int, work func(n int) int64) {
	t.Helper()
	grows(t, n, maxGrowth, work)
}

// LinearMemory is Linear for work with allocations.
func LinearMemory(t testing.TB, n int, work func(n int) int64) {
	t.Helper()
	grows(t, n, maxGrowthOfMemory, work)
}

func grows(t testing.TB, n int, most float64, work func(n int) int64) {
	t.Helper()
	once := work(n)
	more := work(4 * n)
	require.NotZero(t, once)
	require.LessOrEqual(t, float64(more)/float64(once), most, "%d: %d, %d: %d", n, once, 4*n, more)
}

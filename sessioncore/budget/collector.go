package budget

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

// LimitCollector makes the garbage collector keep the process near the budget. By default Go lets
// garbage grow to the size in use; percent bounds it. The index of the sessions comes on top
// (docs/design.md section 7, Memory): its size is the live memory after a collection, less the
// budget's peak since the last one and the memory of others. GOMEMLIMIT in the environment
// overrides this.
//
// A limit that is set once, at the start, does not do: an index beyond it has the collector run
// without a pause. The first reading of 10,000 sessions with memory=64m then takes two and a half
// times the processor time.
func (b *Budget) LimitCollector(others func() int64) {
	if b == nil || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	c := &collector{b: b, others: others, idle: time.AfterFunc(collectorRest, giveBack)}
	c.adjust()
	c.watch()
}

// isPercentFixed says that FixPercent was called.
var isPercentFixed atomic.Bool

// FixPercent sets how much garbage there may be for 100 bytes in use, for the rest of the process: a
// command that makes little garbage, or must be small, knows better than LimitCollector. GOGC in the
// environment overrides this.
func FixPercent(percent int) {
	if os.Getenv("GOGC") != "" {
		return
	}
	isPercentFixed.Store(true)
	debug.SetGCPercent(percent)
}

// collector follows the garbage collector.
type collector struct {
	b      *Budget
	others func() int64
	last   atomic.Int64 // memory limit in force
	room   atomic.Int64 // percent in force
	idle   *time.Timer  // gives memory back
}

// cycle is an object that nothing refers to: its cleanup runs after the next collection. It has a
// size, as objects without one are never collected.
type cycle struct{ _ *collector }

// watch adjusts the limits after each collection, and gives memory back once there was none for a
// while.
func (c *collector) watch() {
	c.idle.Reset(collectorRest)
	runtime.AddCleanup(&cycle{}, func(c *collector) {
		c.adjust()
		c.watch()
	}, c)
}

// giveBack collects the garbage since the last collection, and gives free memory back to the system,
// if that is much. A process without work has no collections, so that it would keep both.
func giveBack() {
	sample := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(sample)
	objects := int64(sample[0].Value.Uint64()) // also those that nothing refers to any more
	live := int64(sample[1].Value.Uint64())
	free := int64(sample[2].Value.Uint64())
	if objects-live+free >= step {
		debug.FreeOSMemory()
	}
}

const (
	// program is the part of the size outside the collector's heap: the program's own pages.
	program = 24 << 20
	// ordinary is the live memory of a process without an index, a part of the overhead.
	ordinary = 12 << 20
	// collectorRest is the time without a collection after which memory is given back.
	collectorRest = 5 * time.Second
	// step is the difference below which the limit stays: setting it stops all goroutines.
	step = 8 << 20
	// garbage is the garbage before a collection, in bytes, or in percent leastRoom of the live
	// memory, as a collection reads all of that.
	garbage, leastRoom = 24 << 20, 25
	// mostRoom bounds that percent where little is live: twice Go's default.
	mostRoom = 200
	// indexRoom is the divisor for the garbage allowed beside an index: with a small budget, a
	// collection every few megabytes would take most of the processor.
	indexRoom = 8
	// percentStep is the difference below which the percent stays.
	percentStep = 5
)

// percent returns how much garbage there may be for 100 bytes in use, if so many bytes are live.
func percent(live int64) int64 {
	share := 100 * garbage / max(live, 1)
	return min(mostRoom, max(leastRoom, share))
}

// adjust sets the percent and the limit for the memory in use, unless they differ little from the last ones.
func (c *collector) adjust() {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	live := int64(sample[0].Value.Uint64())
	c.adjustPercent(live)
	c.adjustLimit(live)
}

// adjustPercent sets the percent for so many bytes of live memory, unless another one has fixed it.
func (c *collector) adjustPercent(live int64) {
	isFixed := os.Getenv("GOGC") != "" || isPercentFixed.Load()
	if isFixed {
		return
	}
	room := percent(live)
	last := c.room.Load()
	if room < last-percentStep || room > last+percentStep {
		c.room.Store(room)
		debug.SetGCPercent(int(room))
	}
}

// adjustLimit sets the memory limit for so many bytes of live memory: the size of the budget, and the index with
// some garbage.
func (c *collector) adjustLimit(live int64) {
	index := int64(0)
	if live > ordinary {
		index = max(live-ordinary-c.b.takePeak()-c.others(), 0)
	}
	limit := c.b.size - program + index + index/indexRoom
	last := c.last.Load()
	if limit < last-step || limit > last+step {
		c.last.Store(limit)
		debug.SetMemoryLimit(limit)
	}
}

package budget

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// LimitCollector makes the garbage collector keep the process near the budget. By itself it lets the memory grow to
// twice the size in use, however much of that is kept for long: here the room for garbage is bounded (percent). The
// index of the sessions comes on top (docs/design.md section 7, Memory): its size is the memory in use after a
// collection, apart from the most that the budget gave since the last one, and the most that others used for a
// moment, which others returns: freed memory must not be taken for an index. If the environment sets GOMEMLIMIT,
// that holds.
func (b *Budget) LimitCollector(others func() int64) {
	if b == nil || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	c := &collector{b: b, others: others}
	c.adjust()
	c.watch()
}

// collector follows the garbage collector.
type collector struct {
	b      *Budget
	others func() int64
	last   atomic.Int64 // the limit that was set
	room   atomic.Int64 // the percent that was set
}

// cycle is an object that nothing refers to: its finalizer runs after the next collection.
type cycle struct{ c *collector }

func (c *collector) watch() {
	runtime.SetFinalizer(&cycle{c}, func(y *cycle) {
		y.c.adjust()
		y.c.watch()
	})
}

const (
	// program is the part of the size that is not the collector's: the pages of the program's file.
	program = 24 << 20
	// ordinary is the memory in use in a process without an index: a part of the overhead.
	ordinary = 12 << 20
)

// step is the difference below which the limit stays: setting it stops all goroutines for a moment.
const step = 8 << 20

const (
	// garbage is how much garbage there may be before it is collected, or leastRoom percent of the memory in use, as
	// each collection reads all of that.
	garbage, leastRoom = 24 << 20, 25
	// mostRoom bounds that percent where little is in use: a small process collects half as often as by Go's default.
	mostRoom = 200
	// indexRoom is the part of an index that comes on top of it, for garbage beside it: with a small budget, a
	// collection for each few megabytes would take most of the processor.
	indexRoom = 8
	// percentStep is as step for the percent.
	percentStep = 5
)

// percent returns how much garbage there may be for 100 bytes in use.
func percent(live int64) int64 { return min(mostRoom, max(leastRoom, 100*garbage/max(live, 1))) }

func (c *collector) adjust() {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	live := int64(sample[0].Value.Uint64())
	room, before := percent(live), c.room.Load()
	if os.Getenv("GOGC") == "" && (room < before-percentStep || room > before+percentStep) {
		c.room.Store(room)
		debug.SetGCPercent(int(room))
	}
	besides := live - c.b.takePeak() - c.others()
	index := max(besides-ordinary, 0)
	limit := c.b.size - program + index + index/indexRoom
	if last := c.last.Load(); limit < last-step || limit > last+step {
		c.last.Store(limit)
		debug.SetMemoryLimit(limit)
	}
}

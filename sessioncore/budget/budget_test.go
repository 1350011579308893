package budget

import (
	"context"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestShown: what is small can always be seen, what is large by some at once.
func TestShown(t *testing.T) {
	b := New(Default)
	var open []*Hold
	for {
		h := b.Hold()
		err := h.ResizeShown(1 << 40)
		if err != nil {
			require.ErrorIs(t, err, ErrNoMemory)
			break
		}
		open = append(open, &h)
	}
	require.Len(t, open, 8)
	small := b.Hold()
	require.NoError(t, small.ResizeShown(freeShown))
	require.Error(t, small.ResizeShown(b.limit/8))
	for _, h := range open {
		h.Close()
	}
	require.Zero(t, b.Held())
}

// TestCachesGiveWay: the memory of caches is given back before a client is refused, and the reason of a
// refusal lasts until there is room.
func TestCachesGiveWay(t *testing.T) {
	b := New(Default)
	var order []string
	caches := make([]Hold, 5)
	for i := range caches {
		caches[i] = b.Kept()
	}
	b.OnFull(func() {
		order = append(order, "below")
		for i := range caches {
			caches[i].Close()
		}
	})
	b.OnFull(func() { order = append(order, "above") })
	for i := range 4 {
		require.NoError(t, caches[i].Resize(b.limit/4))
		require.Error(t, caches[i].Add(1))
	}
	require.Error(t, caches[4].Add(4), "they have no more than clients may have")
	require.Equal(t, b.limit/4*4, b.Idle())
	require.Empty(t, b.Full(), "no client was refused")

	client, other := b.Hold(), b.Hold()
	require.NoError(t, client.Resize(b.limit))
	require.Zero(t, b.Idle())
	require.Equal(t, []string{"above", "below"}, order)
	err := other.Resize(10 << 20)
	require.ErrorIs(t, err, ErrNoMemory)
	require.EqualError(t, err, "memory is full: 100 of 100 MiB are in open files, and 10 MiB more are asked for: "+
		"close some, or mount with -o memory= and more than 256 MiB")
	require.Equal(t, "memory is full: 100 of 100 MiB are in open files", b.Full())
	require.Error(t, caches[0].Add(1))
	require.NoError(t, client.Resize(b.limit-5<<20))
	require.NotEmpty(t, b.Full(), "there is no room for it yet")
	client.Close()
	require.Empty(t, b.Full())
	require.Error(t, other.Resize(1<<40))
	other.Close()
	require.Empty(t, b.Full(), "what never fits is no reason to close files")
}

// TestNil: without a budget nothing is refused.
func TestNil(t *testing.T) {
	var b *Budget
	h := b.Hold()
	require.NoError(t, h.Resize(1<<60))
	require.NoError(t, h.ResizeShown(1<<60))
	h.Close()
	require.Zero(t, b.Held())
	done, err := b.Work(t.Context(), 1<<60)
	require.NoError(t, err)
	done()
	b.LimitCollector(nil)
	b.OnFull(nil)
	b.Evict()
	require.Zero(t, b.Idle())
	require.Empty(t, b.Full())
}

// TestWork: work that does not fit waits for other work, that of a caller who gives up is skipped, and what can never
// fit is refused at once.
func TestWork(t *testing.T) {
	b := New(Default)
	_, err := b.Work(t.Context(), b.workLimit+1)
	require.ErrorIs(t, err, ErrNoMemory)
	done, err := b.Work(t.Context(), b.workLimit)
	require.NoError(t, err)
	small, err := b.Work(t.Context(), freeWork)
	require.NoError(t, err, "not counted")
	small()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = b.Work(ctx, freeWork+1)
	require.ErrorIs(t, err, context.Canceled)

	turn := make(chan error)
	go func() {
		next, err := b.Work(t.Context(), b.workLimit)
		if err == nil {
			next()
		}
		turn <- err
	}()
	require.Eventually(t, func() bool { return b.waiting.Load() == 1 }, 10*time.Second, time.Millisecond)
	select {
	case err := <-turn:
		t.Fatal("two have all at once", err)
	case <-time.After(10 * time.Millisecond):
	}
	done()
	require.NoError(t, <-turn)
	require.Zero(t, b.waiting.Load())
}

// TestTooManyWait: waiting takes memory too, so only so many may.
func TestTooManyWait(t *testing.T) {
	b := New(Default)
	done, err := b.Work(t.Context(), b.workLimit)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	results := make(chan error)
	for range maxWaiting + 1 {
		go func() {
			_, err := b.Work(ctx, b.workLimit)
			results <- err
		}()
	}
	require.ErrorIs(t, <-results, ErrNoMemory)
	cancel()
	for range maxWaiting {
		require.ErrorIs(t, <-results, context.Canceled)
	}
	done()
	_, err = b.Work(t.Context(), b.workLimit)
	require.NoError(t, err, "those who gave up left no trace")
}

// TestCollector: the limit of the garbage collector is the budget and what is in use besides, such as an index.
func TestCollector(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	for live, want := range map[int64]int64{0: mostRoom, garbage: 100, 2 * garbage: 50, 9 * garbage: leastRoom} {
		require.Equal(t, want, percent(live), "of %d bytes", live)
	}
	t.Setenv("GOMEMLIMIT", "")
	b := New(Default)
	c := &collector{b: b, others: func() int64 { return 0 }}
	index := make([]byte, 100<<20)
	runtime.GC()
	c.adjust()
	with := debug.SetMemoryLimit(-1)
	require.GreaterOrEqual(t, with, int64(Default+len(index)-program-ordinary))
	h := b.Hold()
	h.Set(int64(len(index))) // now it is a part of the budget
	c.adjust()
	require.Less(t, debug.SetMemoryLimit(-1), with-int64(len(index))+2*step)
	runtime.KeepAlive(index)
	h.Close()
	c.adjust()
	require.Less(t, debug.SetMemoryLimit(-1), with-int64(len(index))+2*step, "what was just freed is no index")
	runtime.GC()
	c.adjust()
	require.Less(t, debug.SetMemoryLimit(-1), int64(Default+50<<20))
}

// TestFixPercent: a percent that a command sets stays, unless the user set another one.
func TestFixPercent(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	defer isPercentFixed.Store(false)
	t.Setenv("GOMEMLIMIT", "")
	adjusted := func() int {
		c := &collector{b: New(Default), others: func() int64 { return 0 }}
		c.adjust()
		return debug.SetGCPercent(100)
	}
	t.Setenv("GOGC", "300")
	FixPercent(70)
	require.Equal(t, 100, adjusted())
	t.Setenv("GOGC", "")
	require.NotEqual(t, 100, adjusted())
	FixPercent(70)
	require.Equal(t, 70, adjusted())
}

// TestGiveBack: garbage is collected and given back where it is much, and a process without it is left alone.
func TestGiveBack(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	giveBack()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	giveBack()
	runtime.ReadMemStats(&after)
	require.Equal(t, before.NumGC, after.NumGC)

	waste := make([]byte, 8*step)
	waste[0] = 1
	runtime.KeepAlive(waste)
	runtime.ReadMemStats(&before)
	giveBack()
	runtime.ReadMemStats(&after)
	require.Less(t, after.HeapAlloc, before.HeapAlloc-4*step)
	require.Less(t, after.HeapIdle-after.HeapReleased, uint64(step))
}

// TestCollectorFollows: the limit follows the memory in use after each collection, not only after the first.
func TestCollectorFollows(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	t.Setenv("GOMEMLIMIT", "")
	var adjusted, others atomic.Int64
	New(Default).LimitCollector(func() int64 {
		adjusted.Add(1)
		return others.Load()
	})
	collect := func() {
		seen := adjusted.Load()
		require.Eventually(t, func() bool {
			runtime.GC() // again, where the last collection's cleanup had not ended
			return adjusted.Load() > seen
		}, 10*time.Second, time.Millisecond)
	}
	index := make([]byte, 100<<20)
	for range 3 {
		collect()
	}
	require.Eventually(t, func() bool { return debug.SetMemoryLimit(-1) > int64(Default+50<<20) }, 10*time.Second, time.Millisecond)
	others.Store(1 << 40) // the limit then stays as it is, for other tests
	collect()
	require.Eventually(t, func() bool { return debug.SetMemoryLimit(-1) < Default }, 10*time.Second, time.Millisecond)
	runtime.KeepAlive(index)
}

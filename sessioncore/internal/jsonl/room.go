package jsonl

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Reading a file takes memory for a moment, and a program can ask for many files at once. So there are limits for the
// process. Those who wait for room hold nothing that others need to go on: a file's chunks are given back in the order
// in which they were read, whatever is read behind them.

const (
	// maxReading is how many files of more than ChunkSize are read at once. Each takes some MiB, and as many
	// processors as there are.
	maxReading = 8
	// longRoom is how many bytes the chunks with long lines may have in all. A longer line is read alone.
	longRoom = 32 << 20
)

var (
	reading   = semaphore.NewWeighted(maxReading)
	longLines = semaphore.NewWeighted(longRoom)
	// longLoose is held by the one that reads a long value that spans lines.
	longLoose = semaphore.NewWeighted(1)
)

// startReading waits until the file may be read, and returns the function that must be called at the end.
func startReading(ctx context.Context) (done func(), err error) {
	if err := reading.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	long.start()
	return func() {
		long.end()
		reading.Release(1)
	}, nil
}

// longLine waits for room for a line of n bytes, and returns a buffer of that size and the function that gives it back.
func longLine(ctx context.Context, n int64) (buf []byte, free func(), err error) {
	weight := min(n, longRoom)
	if err := longLines.Acquire(ctx, weight); err != nil {
		return nil, nil, err
	}
	buf = long.take(int(n))
	return buf, func() {
		long.give(buf)
		longLines.Release(weight)
	}, nil
}

// buffers are those of long lines and long values. What was given back is used again as long as files are read: the
// garbage collector is not fast enough for the next one.
type buffers struct {
	mu      sync.Mutex // guards the fields below
	readers int
	inUse   int64 // bytes
	peak    int64 // the most that there were at once since the last takePeak, with those that are spare
	spare   [][]byte
}

var long buffers

const (
	// maxSpare is how many buffers are kept: for a chunk and for a value.
	maxSpare = 2
	// longStep divides the sizes of buffers, so that one fits for the next line too.
	longStep = 4 << 20
)

func (b *buffers) start() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.readers++
}

// end is called when a file has been read. After the last one nothing is kept.
func (b *buffers) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.readers--; b.readers == 0 {
		b.spare = nil
	}
}

// take returns a buffer of n bytes.
func (b *buffers) take(n int) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.count()
	for i, buf := range b.spare {
		if cap(buf) >= n {
			b.spare = slices.Delete(b.spare, i, i+1)
			b.inUse += int64(cap(buf))
			return buf[:n]
		}
	}
	b.spare = nil // none of them is large enough, so they are garbage all the sooner
	buf := make([]byte, n, (n+longStep-1)/longStep*longStep)
	b.inUse += int64(cap(buf))
	return buf
}

// give gives back a buffer that take has returned.
func (b *buffers) give(buf []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inUse -= int64(cap(buf))
	if b.readers > 0 && len(b.spare) < maxSpare {
		b.spare = append(b.spare, buf)
	}
}

// count notes how much there is. Callers must hold b.mu.
func (b *buffers) count() {
	n := b.inUse
	for _, buf := range b.spare {
		n += int64(cap(buf))
	}
	b.peak = max(b.peak, n)
}

func (b *buffers) takePeak() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	peak := b.peak
	b.peak = 0
	b.count()
	return peak
}

// TakePeak returns the most bytes that long lines took at once since the last call. All of them are given back soon.
func TakePeak() int64 { return long.takePeak() }

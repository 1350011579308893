package jsonl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// most counts how many are somewhere at once.
type most struct{ now, peak atomic.Int64 }

func (m *most) enter(n int64) (leave func()) {
	in := m.now.Add(n)
	for peak := m.peak.Load(); in > peak && !m.peak.CompareAndSwap(peak, in); peak = m.peak.Load() {
	}
	runtime.Gosched()
	return func() { m.now.Add(-n) }
}

// counted is a file whose readers are counted.
type counted struct {
	*bytes.Reader
	readers *most
}

func (c counted) ReadAt(p []byte, off int64) (int, error) {
	defer c.readers.enter(1)()
	return c.Reader.ReadAt(p, off)
}

// longFile has lines of so many bytes, and short ones between them.
func longFile(lines, size int) []byte {
	var b bytes.Buffer
	for n := range lines {
		fmt.Fprintf(&b, `{"type":"custom","id":"s%d"}`+"\n", n)
		fmt.Fprintf(&b, `{"type":"custom","id":"e%d","data":"%s"}`+"\n", n, strings.Repeat("x", size))
	}
	return b.Bytes()
}

// TestRoom: many files with long lines are read at once, and whole; but only so many bytes of long lines are in memory,
// and only so many files are read. A line that is longer than that is read alone.
func TestRoom(t *testing.T) {
	const lines, size = 1, longRoom / 3
	data := longFile(lines, size)
	var inMemory, readers most
	var all sync.WaitGroup
	for range maxReading + 4 {
		all.Go(func() {
			n := 0
			_, err := Load(t.Context(), counted{bytes.NewReader(data), &readers}, Position{}, int64(len(data)), func(u *Unit) error {
				if len(u.Text) > size {
					defer inMemory.enter(int64(len(u.Text)))()
				}
				n++
				return nil
			})
			if err != nil || n != 2*lines {
				t.Error(n, err)
			}
		})
	}
	all.Wait()
	require.LessOrEqual(t, inMemory.peak.Load(), int64(longRoom))
	require.LessOrEqual(t, readers.peak.Load(), int64(maxReading))
	checkRoomIsFree(t)
}

// TestRoomIsGivenBack: whatever ends a load, its room is free again.
func TestRoomIsGivenBack(t *testing.T) {
	data := longFile(5, KeepBuffer)
	broken := errors.New("broken")
	for after := range 5 {
		_, err := Load(t.Context(), bytes.NewReader(data), Position{}, int64(len(data)), func(*Unit) error {
			if after--; after < 0 {
				return broken
			}
			return nil
		})
		require.ErrorIs(t, err, broken)
		checkRoomIsFree(t)
	}
	require.Panics(t, func() {
		_, _ = Load(t.Context(), bytes.NewReader(data), Position{}, int64(len(data)), func(u *Unit) error {
			if u.Size > KeepBuffer {
				panic("a defect")
			}
			return nil
		})
	})
	checkRoomIsFree(t)
	_, err := Load(t.Context(), bytes.NewReader(data), Position{}, int64(len(data))+1, func(*Unit) error { return nil })
	require.Error(t, err, "the file is shorter")
	checkRoomIsFree(t)
	loose := []byte(`{"data":[` + "\n" + strings.Repeat(`"x",`, KeepBuffer) + "\n" + `1]}` + "\n")
	_, err = Load(t.Context(), bytes.NewReader(loose), Position{}, int64(len(loose)), func(*Unit) error { return broken })
	require.ErrorIs(t, err, broken)
	checkRoomIsFree(t)
}

// TestRoomIsWaitedFor: who waits for room can give up.
func TestRoomIsWaitedFor(t *testing.T) {
	data := longFile(1, KeepBuffer)
	loose := []byte(`{"data":[` + "\n" + strings.Repeat(`"x",`, KeepBuffer) + "\n" + `1]}` + "\n")
	for name, test := range map[string]struct {
		take func() (free func())
		data []byte
	}{
		"files": {func() func() {
			must(reading.Acquire(t.Context(), maxReading))
			return func() { reading.Release(maxReading) }
		}, data},
		"long lines": {func() func() {
			must(longLines.Acquire(t.Context(), longRoom))
			return func() { longLines.Release(longRoom) }
		}, data},
		"long values": {func() func() { must(longLoose.Acquire(t.Context(), 1)); return func() { longLoose.Release(1) } }, loose},
	} {
		t.Run(name, func(t *testing.T) {
			free := test.take()
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() {
				_, err := Load(ctx, bytes.NewReader(test.data), Position{}, int64(len(test.data)), func(*Unit) error { return nil })
				ended <- err
			}()
			cancel()
			require.ErrorIs(t, <-ended, context.Canceled)
			free()
			checkRoomIsFree(t)
		})
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// checkRoomIsFree fails if somebody holds room.
func checkRoomIsFree(t *testing.T) {
	t.Helper()
	require.True(t, reading.TryAcquire(maxReading))
	reading.Release(maxReading)
	require.True(t, longLines.TryAcquire(longRoom))
	longLines.Release(longRoom)
	require.True(t, longLoose.TryAcquire(1))
	longLoose.Release(1)
	TakePeak()
	require.Zero(t, TakePeak(), "what is spare was given back too")
}

// TestLineLength: how a file is cut into chunks changes nothing where a line just becomes a long one, and a line that is
// longer than any that is read is skipped up to its end.
func TestLineLength(t *testing.T) {
	for _, size := range []int{KeepBuffer, KeepBuffer + 1} {
		line := `{"a":"` + strings.Repeat("x", size-8) + `"}`
		checkChunks(t, []byte("{}\n"+line+"\n{}\n"))
		checkChunks(t, []byte("{}\n"+line))
	}
	data := make([]byte, MaxLine+8)
	copy(data, "{}\n")
	copy(data[3+MaxLine+1:], "\n{}\n")
	var units []string
	_, err := Load(t.Context(), bytes.NewReader(data), Position{}, int64(len(data)), func(u *Unit) error {
		units = append(units, fmt.Sprintf("%d %q %d %d %d", u.Kind, u.Reason, u.Line, u.Off, u.Size))
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, []string{
		fmt.Sprintf(`%d "" 1 0 2`, ObjectUnit),
		fmt.Sprintf("%d %q 2 3 %d", SkippedUnit, reasonTooLong, MaxLine+2),
		fmt.Sprintf(`%d "" 3 %d 2`, ObjectUnit, 3+MaxLine+2),
	}, units)
}

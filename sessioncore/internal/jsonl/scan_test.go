package jsonl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/semaphore"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
)

func TestSkipValue(t *testing.T) {
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	mixed := strings.Repeat(`{"a":[`, 5_000) + "1" + strings.Repeat("]}", 5_000)
	for status, texts := range map[rawjson.ScanStatus][]string{
		// A value, a bar and the rest. The zero of 01 is a value.
		rawjson.OK:    {`{}|`, ` [1, 2 ,{"a":null}]| rest`, `"a\u00e9\n\/"|`, `-0.5e+10|,`, `0|1`, deep + "|", mixed + "|"},
		rawjson.Short: {``, `{"a":`, `"abc\`, `"abc\u12`, `tru`, `-`, `1e`, deep[:len(deep)-1]},
		rawjson.Bad:   {`1.x`, "\"a\nb\"", "\"a\x01b\"", `"\u12g4"`, `[1 2]`, `{"a":1,}`, `[}`, `+1`, `nul!`, "\x00"},
	} {
		for _, text := range texts {
			value, rest, isWhole := strings.Cut(text, "|")
			var s rawjson.Scanner
			end, got := s.SkipValue([]byte(value+rest), 0)
			require.Equal(t, status, got, "%.40q", text)
			require.True(t, !isWhole || end == len(value), "%.40q", text)
		}
	}
}

// FuzzScan: what the scanner takes for a whole value, the standard library takes too, and the other way
// round, but for the depth that the latter allows.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5e3,"x\u00e9\\"],"b":{"c":null}}`, `[[[]]]`, `"\ud800"`, `{"a":1}{`, "\"\xff\"", `-0`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var s rawjson.Scanner
		end, status := s.SkipValue(text, 0)
		isWhole := status == rawjson.OK && rawjson.SkipSpace(text, end) == len(text)
		const mostDepth = 1000 // json.Valid refuses a depth of 10,000
		lists := bytes.Count(text, []byte("["))
		objects := bytes.Count(text, []byte("{"))
		if lists+objects < mostDepth {
			require.Equal(t, json.Valid(text), isWhole, "%q", text)
		}
		if status == rawjson.OK && lists < mostDepth {
			require.True(t, json.Valid(text[:end]), "%q", text)
		}
		isObject := isWhole && text[rawjson.SkipSpace(text, 0)] == '{'
		var info LineInfo
		classify(&s, text, nil, &info)
		require.Equal(t, isObject, info.class == lineObject)
	})
}

func TestFlags(t *testing.T) {
	for text, want := range map[string]rawjson.Flags{
		`"plain"`: 0, `{"data":"xblob:sha256:00"}`: 0, `{"blob:sha256:00":1}`: 0, `1e5`: 0,
		`{"data":"blob:sha256:00"}`: rawjson.HasBlob, `{"data":"\u0062lob:sha256\u003a00"}`: rawjson.HasBlob,
		`"é"`: rawjson.HasHighBytes, `1e400`: rawjson.HasBigNumber, strings.Repeat("9", 309): rawjson.HasBigNumber,
	} {
		var s rawjson.Scanner
		_, status := s.SkipValue([]byte(text), 0)
		require.Equal(t, rawjson.OK, status)
		require.Equal(t, want, s.Flags, "%.40s", text)
	}
}

func TestLastNewline(t *testing.T) {
	for _, size := range []int{0, 1, newlinePiece - 1, newlinePiece, newlinePiece + 1, 3*newlinePiece + 5} {
		text := bytes.Repeat([]byte("x"), size)
		require.Equal(t, -1, lastNewline(text))
		for at := range text {
			text[at] = '\n'
			require.Equal(t, at, lastNewline(text), "of %d bytes", size)
			if at%100 != 0 { // the others stay, before the next ones
				text[at] = 'x'
			}
		}
	}
}

// checkChunks: how a file is cut into chunks, and by how many goroutines it is read, changes nothing.
func checkChunks(t *testing.T, data []byte) {
	file := bytes.NewReader(data)
	start := bomLen(file)
	units := func(chunk int64, load func(*loader, context.Context, int64, int64) error) (out []string) {
		l := &loader{
			ctx:   t.Context(),
			obj:   file,
			size:  file.Size(),
			chunk: chunk,
			limit: MaxLine,
			emit: func(u *Unit) error {
				out = append(out, unitFacts(u)...)
				return nil
			},
		}
		require.NoError(t, load(l, t.Context(), start, 0))
		return append(out, fmt.Sprint(l.resume))
	}
	want := units(ChunkSize, (*loader).inline)
	require.Equal(t, want, units(1, (*loader).inline), "small chunks")
	require.Equal(t, want, units(7, (*loader).pipeline), "in parallel")
}

// unitFacts returns the facts of a unit, and those of its line, if there are any.
func unitFacts(u *Unit) (facts []string) {
	place := fmt.Sprintf("%d %s %d %d %d", u.Kind, u.Reason, u.Line, u.Off, u.Size)
	facts = append(facts, fmt.Sprintf("%s %q %v %d", place, u.Text, u.EndsLine, u.Trailing))
	info := u.Info
	if info == nil {
		return facts
	}
	entry := fmt.Sprintf("%d %v %v %v %v", info.CRC, info.Type, info.ID, info.Parents, info.Time)
	message := fmt.Sprintf("%v %v %v", info.Message, info.Role, info.Tool)
	return append(facts, entry, message)
}

// FuzzLines: the lines of a chunk are those between its newlines, each classified by itself.
func FuzzLines(f *testing.F) {
	sessiontest.AddSeeds(f, func(data []byte) { f.Add(data) })
	for _, text := range []string{
		"{}\n", "{}", "{}\n\n{}", " \t{\"a\":1} \r\n", "{\n}\n", "{\"a\":\n1}\n{}\n", "{\"a\n\":1}\n", "[1,\n2]\n", "{} {}\n", "{} x\n{}\n",
		"1\n2\n", "tru\ne\n", "\"\n\"\n", "{\"message\":\n{}}\n{}", "\r\n \n{}\n", "{\"type\"\n:1}\n", "{\"a\":1\n,\"b\":2}\n", "{", "-\n1\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var s rawjson.Scanner
		c := chunk{buf: data}
		c.classify(&s, "", nil)
		var want []LineInfo
		at := 0
		newlines := int64(0)
		for _, line := range bytes.SplitAfter(data, []byte("\n")) {
			text, hasNewline := bytes.CutSuffix(line, []byte("\n"))
			info := LineInfo{start: uint32(at), length: uint32(len(text)), number: uint32(newlines)}
			classify(&s, text, nil, &info)
			if info.class != lineBlank {
				want = append(want, info)
			}
			at += len(line)
			if hasNewline {
				newlines++
			}
		}
		require.Equal(t, want, c.lines)
		require.Equal(t, newlines, c.newlines)
	})
}

func FuzzChunks(f *testing.F) {
	sessiontest.AddSeeds(f, func(data []byte) { f.Add(data) })
	f.Fuzz(checkChunks)
}

// most counts how many are somewhere at once.
type most struct{ now, peak atomic.Int64 }

// enter adds n until leave is called, and lets others enter meanwhile.
func (m *most) enter(n int64) (leave func()) {
	in := m.now.Add(n)
	for {
		peak := m.peak.Load()
		if in <= peak || m.peak.CompareAndSwap(peak, in) {
			break
		}
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

// load loads a text as a file of a size.
func load(ctx context.Context, file io.ReaderAt, size int, emit func(*Unit) error) error {
	_, err := Load(ctx, file, Position{}, int64(size), emit)
	return err
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
			emit := func(u *Unit) error {
				if len(u.Text) > size {
					leave := inMemory.enter(int64(len(u.Text)))
					defer leave()
				}
				n++
				return nil
			}
			file := counted{bytes.NewReader(data), &readers}
			err := load(t.Context(), file, len(data), emit)
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

// longValue is a value of several lines, of which one is long.
var longValue = []byte(`{"data":[` + "\n" + strings.Repeat(`"x",`, KeepBuffer) + "\n" + `1]}` + "\n")

func emitNothing(*Unit) error { return nil }

// TestRoomIsGivenBack: whatever ends a load, its room is free again.
func TestRoomIsGivenBack(t *testing.T) {
	data := longFile(5, KeepBuffer)
	broken := errors.New("broken")
	for units := range 5 {
		left := units
		breakAfter := func(*Unit) error {
			left--
			if left < 0 {
				return broken
			}
			return nil
		}
		err := load(t.Context(), bytes.NewReader(data), len(data), breakAfter)
		require.ErrorIs(t, err, broken)
		checkRoomIsFree(t)
	}
	panicAtLong := func(u *Unit) error {
		if u.Size > KeepBuffer {
			panic("a defect")
		}
		return nil
	}
	require.Panics(t, func() { _ = load(t.Context(), bytes.NewReader(data), len(data), panicAtLong) })
	checkRoomIsFree(t)
	err := load(t.Context(), bytes.NewReader(data), len(data)+1, emitNothing)
	require.Error(t, err, "the file is shorter")
	checkRoomIsFree(t)
	breakAtOnce := func(*Unit) error { return broken }
	err = load(t.Context(), bytes.NewReader(longValue), len(longValue), breakAtOnce)
	require.ErrorIs(t, err, broken)
	checkRoomIsFree(t)
}

// rooms are the bounds on a read, each with a file that needs some of it.
var rooms = []struct {
	name string
	room *semaphore.Weighted
	all  int64
	data []byte
}{
	{"files", reading, maxReading, longFile(1, KeepBuffer)},
	{"long lines", longLines, longRoom, longFile(1, KeepBuffer)},
	{"long values", longLoose, 1, longValue},
}

// TestRoomIsWaitedFor: a load that waits for room can give up.
func TestRoomIsWaitedFor(t *testing.T) {
	for _, c := range rooms {
		t.Run(c.name, func(t *testing.T) {
			require.NoError(t, c.room.Acquire(t.Context(), c.all))
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- load(ctx, bytes.NewReader(c.data), len(c.data), emitNothing) }()
			cancel()
			require.ErrorIs(t, <-ended, context.Canceled)
			c.room.Release(c.all)
			checkRoomIsFree(t)
		})
	}
}

// checkRoomIsFree fails if a load holds room.
func checkRoomIsFree(t *testing.T) {
	t.Helper()
	for _, c := range rooms {
		require.True(t, c.room.TryAcquire(c.all), c.name)
		c.room.Release(c.all)
	}
	TakePeak()
	require.Zero(t, TakePeak(), "the pool was emptied too")
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
	copy(data[3+MaxLine+1:], "\n{}\n") // behind a line of one byte too many
	var units []string
	emit := func(u *Unit) error {
		units = append(units, fmt.Sprintf("%d %q %d %d %d", u.Kind, u.Reason, u.Line, u.Off, u.Size))
		return nil
	}
	err := load(t.Context(), bytes.NewReader(data), len(data), emit)
	require.NoError(t, err)
	require.Equal(t, []string{
		fmt.Sprintf(`%d "" 1 0 2`, ObjectUnit),
		fmt.Sprintf("%d %q 2 3 %d", SkippedUnit, ReasonTooLong, MaxLine+2),
		fmt.Sprintf(`%d "" 3 %d 2`, ObjectUnit, 3+MaxLine+2),
	}, units)
}

// overwritten is a file that has another text of the same length from one of its reads on.
type overwritten struct {
	before, after *strings.Reader
	left          int // reads of before
}

// ReadAt implements io.ReaderAt.
func (o *overwritten) ReadAt(p []byte, off int64) (int, error) {
	o.left--
	if o.left >= 0 {
		return o.before.ReadAt(p, off)
	}
	return o.after.ReadAt(p, off)
}

// TestOverwrittenMeanwhile: whatever text a file has from any read on, loading it ends, and says so where a line is not what
// it was.
func TestOverwrittenMeanwhile(t *testing.T) {
	const unit = "{\"a\":\n1}\n{} 1\n[\n{\"b\":2}\n"
	stale := 0
	for _, many := range []int{1, 100} {
		text := strings.Repeat(unit, many)
		for _, other := range []string{"\n", " ", "\r\n", "{", "{}\n", "[\n\n", "\"", "x"} {
			for reads := range 40 {
				now := strings.Repeat(other, len(text))[:len(text)]
				o := &overwritten{
					before: strings.NewReader(text),
					after:  strings.NewReader(now),
					left:   reads,
				}
				err := load(t.Context(), o, len(text), emitNothing)
				if errors.Is(err, storage.ErrStale) {
					stale++
					continue
				}
				require.NoError(t, err, "%q from read %d on", other, reads)
			}
		}
	}
	require.Positive(t, stale)
}

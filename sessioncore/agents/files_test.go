package agents

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// doubling makes two lines of each.
type doubling struct{}

func (doubling) IsSession(name string) bool                               { return strings.HasSuffix(name, ".jsonl") }
func (doubling) About(string, storage.Object, int64, bool) (About, error) { return About{}, nil }
func (doubling) Converter(about About, _ storage.Object) *Builder {
	return NewBuilder(about, Provider{}, func(b *Builder) func(*Record) {
		return func(r *Record) {
			for range 2 {
				b.out = append(b.out, r.Value...)
				b.out = append(b.out, '\n')
			}
		}
	})
}

// statOf returns the state of a session, which is converted for it.
func statOf(t *testing.T, files *Files, name string) storage.Stat {
	obj, err := files.Open(name)
	require.NoError(t, err)
	st, err := obj.Stat()
	require.NoError(t, err)
	require.NoError(t, obj.Close())
	return st
}

// TestGivenBack: a session whose conversion was given back has the state that it had with it, until its file changes. So
// what was found in it need not be looked for again.
func TestGivenBack(t *testing.T) {
	const sessions = 3 * maxKept
	raw := memory.New()
	name := func(i int) string { return fmt.Sprintf("p/%03d.jsonl", i) }
	for i := range sessions {
		require.NoError(t, raw.WriteFile(name(i), []byte(`{"a":1}`+"\n")))
	}
	files := NewFiles(raw, doubling{}, nil, t.TempDir())
	token := map[int]storage.Token{}
	for round := range 2 {
		for i := range sessions {
			st := statOf(t, files, name(i))
			require.EqualValues(t, 16, st.Size)
			if round > 0 {
				require.Equal(t, token[i], st.Token, "it was converted again")
			}
			token[i] = st.Token
		}
		require.LessOrEqual(t, len(files.slots), maxKept)
		for i := range sessions {
			st, err := files.Stat(name(i))
			require.NoError(t, err)
			require.Equal(t, token[i], st.Token, "%d", i)
		}
	}
	require.NoError(t, raw.WriteFile(name(0), []byte(`{"b":1}`+"\n")))
	st, err := files.Stat(name(0))
	require.NoError(t, err)
	require.NotEqual(t, token[0], st.Token)
}

// line returns a value of about n bytes.
func line(i, n int) string { return fmt.Sprintf(`{"%d":"%s"}`, i, strings.Repeat("x", n)) + "\n" }

// TestMemory: more sessions are open than may be kept, as a Store keeps them, with texts that need
// more memory than there is. Clients may have all memory nevertheless, everything stays readable,
// and nothing is left when all is closed.
func TestMemory(t *testing.T) {
	const sessions = 5 * maxKept
	raw := memory.New()
	limit := budget.New(budget.Min)
	files := NewFiles(raw, doubling{}, limit, t.TempDir())
	name := func(i int) string { return fmt.Sprintf("p/%03d.jsonl", i) }
	var open []storage.Object
	for i := range sessions {
		require.NoError(t, raw.WriteFile(name(i), []byte(line(i, 64<<10))))
		obj, err := files.Open(name(i))
		require.NoError(t, err)
		_, err = obj.Stat()
		require.NoError(t, err)
		open = append(open, obj)
	}
	require.LessOrEqual(t, limit.Idle(), limit.Limit()/2)
	require.Equal(t, limit.Idle(), limit.Held())
	client := limit.Hold()
	require.NoError(t, client.Resize(limit.Limit()))
	require.Zero(t, limit.Idle())
	for i, obj := range open {
		want := strings.Repeat(line(i, 64<<10), 2)
		isSame := want == storagetest.ReadObject(t, obj)
		require.True(t, isSame, "%d", i) // without the texts, which are long
	}
	client.Close()
	for _, obj := range open {
		require.NoError(t, obj.Close())
	}
	require.LessOrEqual(t, len(files.slots), maxKept)

	held := int64(0)
	for round := range 4 { // beside sessions that are open
		for i := range 2 * maxKept {
			first, err := files.Open(name(i))
			require.NoError(t, err)
			defer first.Close()
			statOf(t, files, name(i))
			statOf(t, files, name(sessions-1-i))
		}
		if round == 0 {
			held = limit.Held()
		}
		require.LessOrEqual(t, limit.Held(), held)
	}
	limit.Evict()
	require.Zero(t, limit.Held())
}

// TestTemporaryFiles: sessions that nobody uses give their temporary files back before these take
// more room than all may have, also those that a cache has open.
func TestTemporaryFiles(t *testing.T) {
	const size = 3 << 20 // of a text
	defer func(before int64) { budget.MaxFileBytes = before }(budget.MaxFileBytes)
	before := budget.FileBytes()
	budget.MaxFileBytes = before + 4*size
	raw := memory.New()
	limit := budget.New(budget.Default)
	dir := t.TempDir()
	files := NewFiles(raw, doubling{}, limit, dir)
	var cached []storage.Object
	closeAll := func() {
		for _, obj := range cached {
			require.NoError(t, obj.Close())
		}
		cached = nil
	}
	limit.OnFull(closeAll)
	for i := range 20 {
		name := fmt.Sprintf("p/%d.jsonl", i)
		require.NoError(t, raw.WriteFile(name, []byte(line(i, size/2))))
		obj, err := files.Open(name)
		require.NoError(t, err)
		_, err = obj.Stat()
		require.NoError(t, err)
		require.LessOrEqual(t, budget.FileBytes(), budget.MaxFileBytes+2*size)
		if i%2 == 0 {
			cached = append(cached, obj)
		} else {
			require.NoError(t, obj.Close())
		}
	}
	require.NoError(t, os.Remove(dir)) // no room
	require.NoError(t, raw.WriteFile("p/x.jsonl", []byte(line(1, size))))
	obj, err := files.Open("p/x.jsonl")
	require.NoError(t, err)
	_, err = obj.Stat()
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "set TMPDIR")
	require.Empty(t, cached, "what was idle was given back first")
	require.Equal(t, before, budget.FileBytes())
	require.NoError(t, obj.Close())
}

// openEnd makes lines of all values but the last, which may still become more.
type openEnd struct {
	doubling
	stop chan struct{} // closed when all may go on; nil for no stop
	seen chan struct{}
}

// Converter implements Format. Each record waits for stop, if there is one.
func (o *openEnd) Converter(about About, _ storage.Object) *Builder {
	stop := o.stop
	seen := o.seen
	return NewBuilder(about, Provider{}, func(b *Builder) func(*Record) {
		var last []byte
		b.Pending = func() { b.out = append(b.out, last...) }
		return func(r *Record) {
			if stop != nil {
				seen <- struct{}{}
				<-stop
			}
			b.out = append(b.out, last...)
			last = append(last[:0], r.Value...)
			last = append(last, '\n')
		}
	})
}

// TestLongEnds: the open ends of sessions are not kept in memory for all of them, and a reader that
// has a session open reads the same text, or more, when it goes on.
func TestLongEnds(t *testing.T) {
	sessiontest.NotUnderRace(t)
	const sessions, long = 10, 4 << 20
	raw := memory.New()
	limit := budget.New(budget.Min)
	files := NewFiles(raw, &openEnd{}, limit, t.TempDir())
	var open []storage.Object
	for i := range sessions {
		name := fmt.Sprintf("p/%d.jsonl", i)
		require.NoError(t, raw.WriteFile(name, []byte(line(i, 10)+line(i, long))))
		obj, err := files.Open(name)
		require.NoError(t, err)
		_, err = obj.Stat()
		require.NoError(t, err)
		open = append(open, obj)
		require.LessOrEqual(t, limit.Held(), max(limit.Limit()/4, 2*long))
	}
	for i, obj := range open {
		name := fmt.Sprintf("p/%d.jsonl", i)
		_, err := raw.Append(name, []byte(line(i, 20)))
		require.NoError(t, err)
		before := line(i, 10) + line(i, long)
		now := before + line(i, 20)
		st, err := files.Stat(name)
		require.NoError(t, err)
		require.EqualValues(t, len(now), st.Size)
		text := storagetest.ReadObject(t, obj)
		require.True(t, text == before || text == now, "%d: %d bytes", i, len(text))
		require.NoError(t, obj.Close())
	}
	limit.Evict()
	require.Zero(t, limit.Held())
}

// TestCanceled: a caller that gives up does not wait for a conversion, which goes on for the others
// and ends with the last.
func TestCanceled(t *testing.T) {
	raw := memory.New()
	agent := &openEnd{stop: make(chan struct{}), seen: make(chan struct{}, 10)}
	text := strings.Repeat(line(1, 1<<20), 6)
	require.NoError(t, raw.WriteFile("p/s.jsonl", []byte(text)))
	files := NewFiles(raw, agent, nil, t.TempDir())
	stat := func(ctx context.Context) <-chan error {
		done := make(chan error, 1)
		obj, err := files.Open("p/s.jsonl")
		require.NoError(t, err)
		go func() {
			_, err := storage.StatUntil(ctx, obj)
			_ = obj.Close()
			done <- err
		}()
		return done
	}
	first, leaveFirst := context.WithCancel(t.Context())
	second, leaveSecond := context.WithCancel(t.Context())
	converts := stat(first)
	<-agent.seen // it converts
	files.mu.Lock()
	slot := files.slots["p/s.jsonl"]
	files.mu.Unlock()
	others := []<-chan error{stat(second), stat(t.Context())}
	for slot.waiters.Count() < 3 {
		runtime.Gosched()
	}
	leaveSecond()
	require.ErrorIs(t, <-others[0], context.Canceled, "it waits for nothing")
	leaveFirst()
	st, err := files.Stat("p/s.jsonl")
	require.NoError(t, err, "nor does a look at the name")
	require.EqualValues(t, len(text), st.Size)
	close(agent.stop)
	require.NoError(t, <-converts)
	require.NoError(t, <-others[1])
	require.Len(t, agent.seen, 5, "it was converted once")

	// Where all callers give up, the conversion ends.
	agent.stop = make(chan struct{})
	require.NoError(t, raw.WriteFile("p/s.jsonl", []byte(text)))
	for range 5 {
		<-agent.seen
	}
	alone, leave := context.WithCancel(t.Context())
	converts = stat(alone)
	<-agent.seen
	leave()
	for slot.waiters.Count() > 0 { // a context ends its callers in a goroutine of its own
		runtime.Gosched()
	}
	close(agent.stop)
	require.ErrorIs(t, <-converts, context.Canceled)
	require.Less(t, len(agent.seen), 5, "nobody waited for it")
}

// TestRacyTimes: what was read of a file within a tick of the clock of file times is read again.
func TestRacyTimes(t *testing.T) {
	for racy, want := range map[bool]string{true: "two", false: "one"} {
		mem := memory.New()
		files := &storagetest.Stopped{Storage: mem, At: storagetest.Ticking(racy)}
		require.NoError(t, mem.WriteFile("f", []byte("one")))
		var texts Texts
		require.Equal(t, "one", string(texts.Text(files, "f")))
		require.NoError(t, mem.WriteFile("f", []byte("two")))
		require.Equal(t, want, string(texts.Text(files, "f")), "racy: %v", racy)
	}
}

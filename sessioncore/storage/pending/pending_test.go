package pending

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/memory"
)

// write returns a function that writes data.
func write(data []byte) func(io.Writer) error {
	return func(out io.Writer) error {
		_, err := out.Write(data)
		return err
	}
}

// TestManyAtOnce: however many are written to at the same time, what does not fit has to go to disk, and nothing stays
// counted that is not there.
func TestManyAtOnce(t *testing.T) {
	const files, size = 58, 2 << 20
	limit := budget.New(budget.Default)
	p := New(memory.New(), limit)
	line := bytes.Repeat([]byte("x"), size)
	var fit atomic.Int64
	var writers sync.WaitGroup
	for i := range files {
		writers.Go(func() {
			var err error
			if name := fmt.Sprintf("d%d/f", i); i%2 == 0 {
				err = p.CreatePending(name, true, write(line))
			} else if err = p.CreatePending(name, false, write(nil)); err == nil {
				_, err = p.Append(name, line)
			}
			switch {
			case err == nil:
				fit.Add(1)
			case !errors.Is(err, storage.ErrNoRoom):
				t.Error(err)
			}
		})
	}
	writers.Wait()
	require.Positive(t, fit.Load())
	require.LessOrEqual(t, fit.Load()*size, limit.Limit()/4)
	require.Equal(t, fit.Load()*size, p.Size())
	require.Equal(t, p.Size(), limit.Held())
	for _, name := range p.Names() {
		require.NoError(t, p.Storage.MkdirAll(storage.Dir(name)))
		require.NoError(t, p.Keep(t.Context(), name, nil))
	}
	require.Zero(t, limit.Held())
	require.Empty(t, p.below)
	items, err := p.memory.List("")
	require.NoError(t, err)
	require.Empty(t, items)
}

// TestListed: what waits is listed with what is on disk, each name once.
func TestListed(t *testing.T) {
	disk := memory.New()
	require.NoError(t, disk.WriteFile("d/b", nil))
	p := New(disk, nil)
	for _, name := range []string{"d/a", "d/c", "e/f/g"} {
		require.NoError(t, p.CreatePending(name, false, write(nil)))
	}
	for dir, want := range map[string][]string{"": {"d", "e"}, "d": {"a", "b", "c"}, "e": {"f"}, "e/f": {"g"}} {
		items, err := p.List(dir)
		require.NoError(t, err)
		var names []string
		for _, item := range items {
			names = append(names, item.Name)
		}
		require.Equal(t, want, names, dir)
	}
	p.forget("e/f/g")
	_, err := p.Stat("e")
	require.True(t, storage.IsMissing(err))
	require.True(t, p.any("d"))
}

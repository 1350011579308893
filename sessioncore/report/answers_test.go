package report

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
)

// counting is a storage that counts the bytes that are read.
type counting struct {
	storage.Storage
	read atomic.Int64
}

func (c *counting) Open(name string) (storage.Object, error) {
	obj, err := c.Storage.Open(name)
	return countingObject{obj, &c.read}, err
}

type countingObject struct {
	storage.Object
	read *atomic.Int64
}

func (o countingObject) ReadAt(p []byte, off int64) (int, error) {
	o.read.Add(int64(len(p)))
	return o.Object.ReadAt(p, off)
}

// settle waits until the file's times would show another change.
func settle(t *testing.T, f *sessiontest.File) {
	require.Eventually(t, func() bool {
		st, err := f.Storage.Stat(sessiontest.FileName)
		return err == nil && !st.Racy(time.Now().UnixNano())
	}, time.Minute, time.Millisecond)
}

// TestTextsAreReadOnce: what a session cost takes its index, and of each answer the few bytes that say it.
func TestTextsAreReadOnce(t *testing.T) {
	text := sessiontest.Header
	for n := range 200 {
		text += usageLine(n, "null", `{"role":"assistant","content":[{"type":"text","text":"`+strings.Repeat("text ", 2000)+`"}],"provider":"p","model":"m","usage":{"input":1}}`)
	}
	f := sessiontest.NewFile(t, text)
	settle(t, f)
	files := &counting{Storage: f.Storage}
	snap := sessiontest.Snapshot(t, sessioncore.NewStore(files).Session(sessiontest.FileName))
	before := files.read.Load()
	costs, err := Costs(t.Context(), snap, Prices{})
	require.NoError(t, err)
	require.Len(t, costs, 200)
	require.Less(t, files.read.Load()-before, int64(len(text)/50))
}

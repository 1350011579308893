package report

import (
	"encoding/json"
	"os"
	"path/filepath"
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
		text += usageLine(n, "null",
			`{"role":"assistant","content":[{"type":"text","text":"`+strings.Repeat("text ", 2000)+`"}],"provider":"p","model":"m","usage":{"input":1}}`)
	}
	f := sessiontest.NewFile(t, text)
	settle(t, f)
	files := &counting{Storage: f.Storage}
	snap := sessiontest.Snapshot(t, sessioncore.NewStore(files).Session(sessiontest.FileName))
	before := files.read.Load()
	costs, err := costsOf(t.Context(), snap, Prices{})
	require.NoError(t, err)
	require.Len(t, costs.records, 200)
	require.Less(t, files.read.Load()-before, int64(len(text)/50))
}

// TestUsageAgreesWithPi: the sums of recorded sessions, in all and by model, are those that pi gave.
func TestUsageAgreesWithPi(t *testing.T) {
	files, err := filepath.Glob("../../testdata/piclient/*/*.jsonl")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	summaries := 0
	for _, file := range files {
		text, err := os.ReadFile(strings.TrimSuffix(file, ".jsonl") + ".want.json")
		require.NoError(t, err)
		var want struct {
			Usage struct {
				AssistantMessages                          int
				Input, Output, CacheRead, CacheWrite, Cost float64
				Models                                     map[string]struct{ Cost, Tokens float64 }
			}
		}
		require.NoError(t, json.Unmarshal(text, &want))
		store := sessioncore.NewStore(sessiontest.OpenDir(t, filepath.Dir(file)))
		t.Cleanup(store.Close)
		store.SetProgram(func(string) sessioncore.Program { return sessioncore.ByPi })
		s := sessiontest.Snapshot(t, store.Session(filepath.Base(file)))
		usage, _ := readUsage(t, s, sessiontest.Leaf(t, s))
		require.Equal(t, want.Usage.AssistantMessages, usage.Total.AssistantMessages, file)
		require.Equal(t, []float64{want.Usage.Input, want.Usage.Output, want.Usage.CacheRead, want.Usage.CacheWrite},
			[]float64{*usage.Total.Input, *usage.Total.Output, *usage.Total.CacheRead, *usage.Total.CacheWrite}, file)
		require.InEpsilon(t, want.Usage.Cost, *usage.Total.Cost.Total, 1e-9, file)
		for model, sums := range want.Usage.Models {
			require.Contains(t, usage.Models, model, file)
			require.InEpsilon(t, sums.Cost, *usage.Models[model].Cost.Total, 1e-9, "%s: %s", file, model)
			if model == piToolsModel {
				summaries++
			}
		}
	}
	require.NotZero(t, summaries, "usage of tools and summaries is among what was recorded")
}

// TestRoom: each byte of the file counts once, by what it is, also when the file has grown, and an image that comes again.
func TestRoom(t *testing.T) {
	const image, call = `{"type":"image","data":"AAAA","mimeType":"image/png"}`, `{"type":"toolCall","id":"c","name":"read","arguments":{"path":"/x"}}`
	const thought, words = `{"type":"thinking","thinking":"hm"}`, `{"type":"text","text":"words"}`
	const result, blob = `{"role":"toolResult","toolName":"read","content":[` + words +
		`],"details":{"a":1}}`, `{"type":"image","data":"blob:sha256:00","mimeType":"image/png"}`
	s := newTestSession(t, sessiontest.Header)
	var want roomBytes
	var repeated repeatedImages
	for n, add := range []struct {
		message string
		kinds   roomBytes
		again   int
	}{
		{`{"role":"user","content":"hello"}`, roomBytes{Text: 7}, 0},
		{`{"role":"user","content":[` + words + `,` + image + `,` + image + `]}`, roomBytes{Text: int64(len(words)), Images: int64(2 * len(image))}, 1},
		{`{"role":"assistant","content":[` + thought + `,` + words + `,` + call + `,{"type":"new"}],"usage":{"input":1}}`,
			roomBytes{Thinking: int64(len(thought)), Text: int64(len(words)), ToolCalls: int64(len(call))}, 0},
		{result, roomBytes{ToolResults: int64(len(sessiontest.MessageLine(3, result)))}, 0},
		{`{"role":"toolResult","toolName":"read","content":[` + image + `,` + blob + `]}`,
			roomBytes{ToolResults: int64(len(sessiontest.MessageLine(4, `{"role":"toolResult","toolName":"read","content":[,]}`))),
				Images: int64(len(image) + len(blob))}, 1},
		{`{"role":"user","content":[{"type":"tool_result","content":[` + blob + `]}]}`,
			roomBytes{ToolResults: int64(len(`{"type":"tool_result","content":[]}`)), Images: int64(len(blob))}, 1},
	} {
		s.Append(sessiontest.MessageLine(n, add.message))
		want.Text += add.kinds.Text
		want.Thinking += add.kinds.Thinking
		want.ToolCalls += add.kinds.ToolCalls
		want.ToolResults += add.kinds.ToolResults
		want.Images += add.kinds.Images
		repeated.Count += add.again
		snap := sessiontest.Snapshot(t, s.session)
		usage, _ := readUsage(t, snap, sessioncore.NoEntry)
		want.Other = snap.Stat().Size - want.Text - want.Thinking - want.ToolCalls - want.ToolResults - want.Images
		require.Equal(t, want, usage.Bytes, add.message)
		require.Equal(t, repeated.Count, usage.RepeatedImages.Count, add.message)
		snap.Release()
	}
}

package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage/storagetest"
)

// TestTextsAreReadOnce: what a session cost takes its index, and of each answer the few bytes that say it.
func TestTextsAreReadOnce(t *testing.T) {
	text := sessiontest.Header
	for n := range 200 {
		text += messageAt(n%60, fmt.Sprint(n), "",
			`{"role":"assistant","content":[{"type":"text","text":"`+strings.Repeat("text ", 2000)+`"}],"provider":"p","model":"m","usage":{"input":1}}`)
	}
	s, read := newTestStore(t), 0
	s.put("s.jsonl", text)
	files := &storagetest.Hooked{Storage: s.Storage, After: func(c storagetest.Call, err error) error {
		if c.Op == "ReadAt" {
			read += c.Size
		}
		return err
	}}
	snap := sessiontest.Snapshot(t, sessioncore.NewStore(files).Session("s.jsonl"))
	read = 0
	costs, err := costsOf(t.Context(), snap, Prices{})
	require.NoError(t, err)
	require.Len(t, costs.records, 200)
	require.Less(t, read, len(text)/50)
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
		s := snapshotOfFile(t, file, sessioncore.ByPi)
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

// sumOfRoom returns the bytes of all parts of a file.
func sumOfRoom(b roomBytes) int64 {
	return b.Text + b.Thinking + b.ToolCalls + b.ToolResults + b.Images + b.Other
}

// TestRoom: each byte of the file counts once, by what it is, also when the file has grown, and an image that comes again.
func TestRoom(t *testing.T) {
	s := newTestSession(t, sessiontest.Header)
	n := 0
	before, _ := readUsage(t, s.acquire(t), sessioncore.NoEntry)
	sessiontest.Table(t, "testdata/room.txt", func(t *testing.T, _, message string) string {
		line := sessiontest.MessageLine(n, message)
		s.Append(line)
		n++
		is, _ := readUsage(t, s.acquire(t), sessioncore.NoEntry)
		was := before.Bytes
		b := is.Bytes
		before = is
		require.EqualValues(t, len(line), sumOfRoom(b)-sumOfRoom(was))
		return fmt.Sprintf("text %d, thinking %d, calls %d, results %d, images %d, %d repeated", b.Text-was.Text, b.Thinking-was.Thinking,
			b.ToolCalls-was.ToolCalls, b.ToolResults-was.ToolResults, b.Images-was.Images, is.RepeatedImages.Count)
	})
}

package report

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/program"
)

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
		store.SetProgram(func(string) program.Program { return program.Pi })
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

package copilot

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/agents/agentstest"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
)

const sampleID = "d1d1d1d1-0000-4000-8000-000000000001"

var kit = agentstest.Kit{
	Agent: "copilot",
	Place: func(sample string) string {
		if filepath.Ext(sample) == oldEnding {
			return oldDir + "/session_" + sampleID + "_1759305600000" + oldEnding
		}
		return stateDir + "/" + sampleID + "/" + eventsName
	},
}

func TestSamples(t *testing.T) {
	kit.Samples(t)
}

// FuzzConvert checks that events in any order, with members of any kind, give whole entries in a tree,
// and the same ones where the file grew.
func FuzzConvert(f *testing.F) {
	samples, err := filepath.Glob(filepath.Join(sessiontest.TestData(f), "agents/copilot/*.jsonl"))
	require.NoError(f, err)
	for _, sample := range samples {
		text, err := os.ReadFile(sample)
		require.NoError(f, err)
		f.Add(string(text), "")
		f.Add(string(text), "a8a8a8a8-0000-4000-8000-00000000000a")
	}
	f.Fuzz(func(t *testing.T, file, agent string) {
		about, objects := agents.About{ID: "s", Chain: agent, Side: agent != ""}, ""
		for line := range strings.Lines(file[:min(len(file), 16<<10)]) {
			if v := rawjson.Value(strings.TrimSpace(line)); len(v) > 0 && v[0] == '{' && rawjson.IsValidObject(v) {
				objects += string(v) + "\n"
			}
		}
		agentstest.Prefixes(t, func() *agents.Builder { return New(nil).Converter(about, nil) }, objects)
	})
}

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

// TestTyped: old clients end a message with a reminder, which is not the person's; one in the middle is.
func TestTyped(t *testing.T) {
	for text, want := range map[string]string{
		"Count the herons": "Count the herons",
		"Count the herons\n<reminder>be brief</reminder>\n": "Count the herons",
		"<reminder>be brief</reminder>":                     "",
		"What is <reminder>x</reminder> for?":               "What is <reminder>x</reminder> for?",
		"What is </reminder>":                               "What is </reminder>",
	} {
		require.Equal(t, want, typed(text))
	}
}

// TestAbort: what a person ended is the answer to the last prompt, not that to the one before.
func TestAbort(t *testing.T) {
	event := func(n, typ, data string) string {
		return `{"type":"` + typ + `","data":` + data + `,"id":"` + n + `","timestamp":"2026-10-08T10:00:0` + n + `.000Z"}` + "\n"
	}
	start := event("0", "session.start", `{"sessionId":"s","startTime":"2026-10-08T10:00:00.000Z"}`)
	first := event("1", "user.message", `{"content":"Is the tide in?"}`) + event("2", "assistant.message", `{"content":"It is."}`)
	second := event("3", "user.message", `{"content":"And now?"}`)
	abort := event("9", "abort", `{"reason":"user initiated"}`)
	afterAnswer := start + first + abort
	afterPrompt := start + first + second + abort
	for text, want := range map[string]int{afterAnswer: 1, afterPrompt: 0} {
		whole, _ := agentstest.Convert(t, New(nil).Converter(agents.About{ID: "s"}, nil), text)
		require.Equal(t, want, strings.Count(whole, `"stopReason":"aborted"`), text)
	}
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
		const most = 16 << 10 // for time
		about := agents.About{ID: "s", Chain: agent, Side: agent != ""}
		objects := ""
		for line := range strings.Lines(file[:min(len(file), most)]) {
			v := rawjson.Value(strings.TrimSpace(line))
			if v.IsObject() && rawjson.IsValidObject(v) {
				objects += string(v) + "\n"
			}
		}
		converter := func() *agents.Builder { return New(nil).Converter(about, nil) }
		agentstest.Prefixes(t, converter, objects)
	})
}

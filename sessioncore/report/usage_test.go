package report

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
)

// usageOfFile is what usage.json holds.
type usageOfFile struct {
	Total usageTotals
	Own   usageTotals

	Subagents usageTotals

	Models map[string]usageTotals
	Branch struct {
		Total  usageTotals
		Models map[string]usageTotals
	}
	Bytes          roomBytes
	RepeatedImages repeatedImages
}

type usageTotals struct {
	AssistantMessages, Unpriced                                        int
	Input, Output, CacheRead, CacheWrite, TotalTokens, PremiumRequests *float64
	Cost                                                               struct{ Input, Output, CacheRead, CacheWrite, Total *float64 }
	Listed                                                             float64
}

// numbers lists the totals, null for what is not finite, as the client would print them.
func (u usageTotals) numbers() string {
	text, _ := json.Marshal([]any{u.Input, u.Output, u.CacheRead, u.CacheWrite, u.TotalTokens, u.PremiumRequests, u.Cost.Total})
	return string(text)
}

func readUsage(t testing.TB, s *sessioncore.Snapshot, leaf sessioncore.Entry) (usage usageOfFile, text string) {
	t.Helper()
	d, err := Usage(context.Background(), s, leaf, nil, Prices{}, Sum{})
	require.NoError(t, err)
	return parseUsage(t, d)
}

// usageWith returns usage.json without a branch.
func usageWith(t testing.TB, s, parent *sessioncore.Snapshot, prices Prices) (usage usageOfFile, text string) {
	t.Helper()
	d, err := Usage(context.Background(), s, sessioncore.NoEntry, parent, prices, Sum{})
	require.NoError(t, err)
	return parseUsage(t, d)
}

func parseUsage(t testing.TB, d *document.Document) (usage usageOfFile, text string) {
	t.Helper()
	b := sessiontest.ReadExactly(t, d, nil)
	decoder := json.NewDecoder(strings.NewReader(string(b)))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&usage), "%s", b)
	return usage, string(b)
}

// TestUsageAgreesWithTheClient: totals that the real client gave for these sessions; its 14.9.9 and 18.2.3
// agree where they read the same file. In order: input, output, read from and written to the cache, tokens,
// premium requests, cost, which the client adds as doubles.
func TestUsageAgreesWithTheClient(t *testing.T) {
	for file, want := range map[string]string{
		"*/2026-01-04*.jsonl":    "[19,331,5331,6101,11782,0,0.03923955]",
		"*/2026-03-30*.jsonl":    "[148,4850,320376,87001,412375,0,0.6568348500000001]",
		"*/2026-03-31*.jsonl":    "[122,4062,243718,102825,350727,0,0.7146399499999999]",
		"*/2026-04-14*.jsonl":    "[14,286,26266,13374,39940,0,0.020788099999999997]",
		"*/2026-05-11*.jsonl":    "[34,640,58204,15079,73957,0,0.08370945000000002]",
		"*/2026-03-30*/*1.jsonl": "[7,470,5374,6277,12128,0,0.010740650000000001]",
	} {
		files, err := filepath.Glob(filepath.Join(sessiontest.DemoDir(t), file))
		require.NoError(t, err)
		require.Len(t, files, 1)
		s := snapshotOfFile(t, files[0], sessioncore.ByUnknown)
		usage, text := readUsage(t, s, sessiontest.Leaf(t, s))
		require.Equal(t, withoutNoise(t, want), usage.Total.numbers(), file)
		input, messages := 0.0, 0
		for _, model := range usage.Models {
			input += *model.Input
			messages += model.AssistantMessages
		}
		require.Equal(t, *usage.Total.Input, input, text)
		require.Equal(t, usage.Total.AssistantMessages, messages, text)
	}
}

// withoutNoise returns a list of numbers, each with twelve decimals at most.
func withoutNoise(t *testing.T, list string) string {
	t.Helper()
	var numbers []float64
	require.NoError(t, json.Unmarshal([]byte(list), &numbers))
	for i, n := range numbers {
		numbers[i] = math.Round(n*1e12) / 1e12
	}
	text, err := json.Marshal(numbers)
	require.NoError(t, err)
	return string(text)
}

// TestUsageIsPrinted: as a person and jq read it.
func TestUsageIsPrinted(t *testing.T) {
	answer := `{"role":"assistant","provider":"anthropic","model":"claude",` +
		`"usage":{"input":7,"output":20,"cacheRead":300,"cacheWrite":4000,"totalTokens":4327,` +
		`"cost":{"input":0.000021,"output":0.0003,"cacheRead":0.00009,"cacheWrite":0.015,"total":0.015411}}}`
	lines := messageAt(0, "u0", "", answer) + messageAt(0, "u1", "", answer)
	snap := snapshotOf(t, strings.ReplaceAll(lines, `"timestamp":"2026-01-05T09:00:00.000Z",`, ""))
	_, text := readUsage(t, snap, sessiontest.Leaf(t, snap))
	want, err := os.ReadFile("testdata/usage.json")
	require.NoError(t, err)
	require.Equal(t, string(want), text)
}

// TestUsageOfOddMessages: what is missing or is no number counts as 0, but a cost of tokens, which nobody knows; both spellings
// count.
func TestUsageOfOddMessages(t *testing.T) {
	sessiontest.Page(t, "testdata/usages.txt", func(t *testing.T, _, message, want string) {
		snap := snapshotOf(t, messageAt(0, "u0", "", message))
		usage, _ := readUsage(t, snap, 0)
		models := strings.Join(slices.Sorted(maps.Keys(usage.Models)), " ")
		require.Equal(t, want, strings.TrimSpace(usage.Total.numbers()+" "+models)+"\n", message)
		require.Equal(t, usage.Total, usage.Branch.Total)
	})
	snap := snapshotOf(t, `{"type":"model_usage","id":"a","provider":"p","model":"tiny","usage":{"input":3,"output":1}}`+"\n")
	usage, _ := readUsage(t, snap, 0)
	require.Equal(t, "[3,1,0,0,4,0,null]", usage.Models["p/tiny"].numbers(), "a call beside the conversation, as newer clients record it")
	require.Zero(t, usage.Total.AssistantMessages)
}

// TestUsageGrows: what is counted once is not read again, and an older snapshot goes on telling its own.
func TestUsageGrows(t *testing.T) {
	answer := func(n int, model string) string {
		return fmt.Sprintf(`{"role":"assistant","provider":"p","model":"%s","usage":{"input":%d,"cost":{"total":0.1}}}`, model, n)
	}
	s := newTestSession(t, sessiontest.Header+messageAt(0, "u0", "", answer(1, "a"))+messageAt(0, "u1", "u0", answer(2, "b")))
	before := s.acquire(t)
	usage, _ := readUsage(t, before, 1)
	require.Equal(t, "[3,0,0,0,3,0,0.2]", usage.Total.numbers())
	s.Append(messageAt(0, "u2", "u0", answer(4, "c")))
	after := s.acquire(t)
	shared := func(s *sessioncore.Snapshot) *facts[allUsage] {
		return s.Shared(factsKey[allUsage]{s.Dialect()}, func() any { return nil }).(*facts[allUsage])
	}
	require.Same(t, shared(before), shared(after), "carried over")
	require.Equal(t, 2, shared(after).looked)
	usage, text := readUsage(t, after, sessiontest.Leaf(t, after))
	require.Equal(t, "[7,0,0,0,7,0,0.3]", usage.Total.numbers(), "without the noise of doubles")
	require.Equal(t, "[5,0,0,0,5,0,0.2]", usage.Branch.Total.numbers())
	require.Equal(t, []string{"p/a", "p/c"}, slices.Sorted(maps.Keys(usage.Branch.Models)))
	require.Less(t, strings.Index(text, `"p/b"`), strings.Index(text, `"p/c"`), "by name")
	usage, _ = readUsage(t, before, 1)
	require.Equal(t, "[3,0,0,0,3,0,0.2]", usage.Total.numbers())
	require.Len(t, usage.Models, 2)
	usage, _ = readUsage(t, after, sessioncore.NoEntry)
	require.Equal(t, "[0,0,0,0,0,0,0]", usage.Branch.Total.numbers())
	s.Write(sessiontest.Header + messageAt(0, "u0", "", answer(9, "z")))
	rewritten := s.acquire(t)
	usage, _ = readUsage(t, rewritten, 0)
	require.Equal(t, "[9,0,0,0,9,0,0.1]", usage.Total.numbers())
}

// TestManyModels: names cannot fill the memory.
func TestManyModels(t *testing.T) {
	var lines strings.Builder
	for n := range maxModels + 50 {
		lines.WriteString(messageAt(0, fmt.Sprint(n), "", fmt.Sprintf(`{"role":"assistant","provider":"p","model":"%d","usage":{"input":1}}`, n)))
	}
	snap := snapshotOf(t, lines.String())
	usage, _ := readUsage(t, snap, sessioncore.NoEntry)
	require.Len(t, usage.Models, maxModels+1)
	require.EqualValues(t, 50, *usage.Models["other"].Input)
	require.EqualValues(t, maxModels+50, *usage.Total.Input)
}

func TestNumbersAreWrittenAsJavaScriptDoes(t *testing.T) {
	for want, f := range map[string]float64{
		"0": math.Copysign(0, -1), "1": 1, "-2.5": -2.5, "1e+21": 1e21, "100000000000000000000": 1e20, "1e-7": 1e-7, "0.000001": 1e-6,
		"1.7976931348623157e+308": math.MaxFloat64, "5e-324": 5e-324, "null": math.Inf(1), "0.30000000000000004": 0.30000000000000004,
	} {
		require.Equal(t, want, string(rawjson.AppendNumber(nil, f)))
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		f := math.Float64frombits(rnd.Uint64())
		if math.IsNaN(f) || math.IsInf(f, 0) {
			continue
		}
		want, err := json.Marshal(f) // the same form, by its documentation
		require.NoError(t, err)
		require.Equal(t, string(want), string(rawjson.AppendNumber(nil, f)))
	}
}

// FuzzUsage: whatever a file holds, usage.json is one JSON object with the keys that it always has.
func FuzzUsage(f *testing.F) {
	fuzzSnapshots(f, func(t *testing.T, snap *sessioncore.Snapshot) {
		usage, _ := readUsage(t, snap, sessiontest.Leaf(t, snap))
		b := usage.Bytes
		require.GreaterOrEqual(t, min(b.Text, b.Thinking, b.ToolCalls, b.ToolResults, b.Images, b.Other), int64(0))
		require.Equal(t, snap.Stat().Size, b.Text+b.Thinking+b.ToolCalls+b.ToolResults+b.Images+b.Other)
	})
}

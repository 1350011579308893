package report

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	_ "sessionfs/sessioncore/agents/all" // says which providers bill requests
	"sessionfs/sessioncore/internal/sessiontest"
)

func answerOf(id, model, usage string) string {
	return `{"type":"message","id":"` + id +
		`","parentId":null,"timestamp":"2026-05-01T00:00:00Z","message":{"role":"assistant","content":[],"provider":"p","model":"` +
		model + `","usage":` + usage + `}}` + "\n"
}

// cost is the whole cost, and how many answers are without one.
func (u usageTotals) cost() string {
	text := "none"
	if u.Cost.Total != nil {
		text = fmt.Sprintf("%.12g", *u.Cost.Total)
	}
	if u.Unpriced > 0 {
		text += fmt.Sprintf(", %d without", u.Unpriced)
	}
	return text
}

// testPrices are those of testdata/prices.json.
func testPrices(t *testing.T) Prices {
	prices, err := OpenPrices("testdata/prices.json")
	require.NoError(t, err)
	prices.list = false
	return prices
}

// TestCosts: see the page.
func TestCosts(t *testing.T) {
	sessiontest.Page(t, "testdata/costs.txt", func(t *testing.T, name, give, want string) {
		lines := ""
		for n, line := range strings.Split(give, "\n") {
			line, imported := strings.CutPrefix(line, "imported ")
			if model, usage, ok := strings.Cut(line, " "); ok {
				lines += answerOf(fmt.Sprint(n), model, usage)
			}
			if imported {
				lines = strings.Replace(lines, `"parentId"`, `"origin":{"line":3},"parentId"`, 1)
			}
		}
		var got strings.Builder
		snap := acquired(t, lines)
		usage, _ := readUsage(t, snap, sessioncore.NoEntry)
		fmt.Fprintln(&got, usage.Total.cost())
		usage, _ = usageWith(t, snap, nil, testPrices(t))
		fmt.Fprintf(&got, "%s, listed %.12g\n", usage.Total.cost(), usage.Total.Listed)
		require.Equal(t, usage.Total, usage.Own)
		for _, model := range slices.Sorted(maps.Keys(usage.Models)) {
			of := usage.Models[model]
			fmt.Fprintf(&got, "%s: %s\n", model, of.cost())
		}
		require.Equal(t, want, got.String(), "%s: %s", name, give)
	})
}

func TestWrongPrices(t *testing.T) {
	dir := t.TempDir()
	for text, why := range map[string]string{
		``:         "not a JSON object",
		`[1]`:      "not a JSON object",
		`{}`:       "no model",
		`{"a":1}`:  `model "a"`,
		`{"a":{}}`: "no model",
		`{"a":{"input_cost_per_token":"1","output_cost_per_token":1}}`: `model "a"`,
		`{"a":{"input_cost_per_token":1,"output_cost_per_token":-1}}`:  "below 0",
		`{"a":{"input_cost_per_token":1,"output_cost_per_token":1}`:    "unexpected end",
	} {
		name := filepath.Join(dir, "prices.json")
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		_, err := OpenPrices(name)
		require.ErrorContains(t, err, why, text)
		require.ErrorContains(t, err, name)
	}
	_, err := OpenPrices(filepath.Join(dir, "missing"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = OpenPrices(dir)
	require.ErrorContains(t, err, "not a file")
}

// TestPriceList: the list that comes along can be read, says its month, and has models of each provider; a file replaces some.
func TestPriceList(t *testing.T) {
	prices, err := OpenPrices("")
	require.NoError(t, err)
	require.Regexp(t, `^20\d\d-\d\d$`, prices.Source())
	for _, model := range []string{"anthropic/claude-opus-4-5", "openai-codex/gpt-5", "google/gemini-2.5-pro"} {
		of, ok := prices.find(model)
		require.True(t, ok, model)
		require.Positive(t, of.input, model)
		require.GreaterOrEqual(t, of.output, of.input, model)
	}
	for _, model := range []string{"p/cheap", "github-copilot/gpt-5", "copilot/claude-opus-4.5"} {
		_, ok := prices.find(model)
		require.False(t, ok, model)
	}
	name := filepath.Join(t.TempDir(), "mine.json")
	require.NoError(t, os.WriteFile(name, []byte(`{"claude-opus-4-5":{"input_cost_per_token":7,"output_cost_per_token":8}}`), 0o600))
	mine, err := OpenPrices(name)
	require.NoError(t, err)
	require.Equal(t, prices.Source()+" and of mine.json", mine.Source())
	for model, want := range map[string]amount{"anthropic/claude-opus-4-5": 7, "anthropic/claude-opus-4-5-20251101": 7, "anthropic/claude-haiku-4-5": 1e-6} {
		of, ok := mine.find(model)
		require.True(t, ok, model)
		require.Equal(t, want, of.input, model)
	}
}

// TestPriceOfAName: a model is found by its exact name, then without a provider, a day or its host's
// region or version.
func TestPriceOfAName(t *testing.T) {
	table, err := readPrices([]byte(`{
		"claude-a-4-5": {"input_cost_per_token": 1, "output_cost_per_token": 1},
		"claude-a-4-5-20250101": {"input_cost_per_token": 2, "output_cost_per_token": 1},
		"router/claude-a-4-5": {"input_cost_per_token": 3, "output_cost_per_token": 1},
		"gpt-5.1": {"input_cost_per_token": 4, "output_cost_per_token": 1},
		"gpt-5.1-mini": {"input_cost_per_token": 5, "output_cost_per_token": 1}
	}`))
	require.NoError(t, err)
	for model, want := range map[string]amount{
		"anthropic/claude-a-4-5": 1, "claude-a-4-5": 1, "x/claude-a-4.5": 1, "anthropic/claude-a-4-5-20250101": 2, "anthropic/claude-a-4-5-20260202": 1,
		"x/claude-a-4-5-2026-02-02": 1, "router/claude-a-4-5": 3, "open/router/claude-a-4-5": 3, "vertex/claude-a-4-5@20250101": 1,
		"vertex/claude-a-4-5@default": 1, "bedrock/us.anthropic.claude-a-4-5-20250101-v1:0": 2, "bedrock/anthropic.claude-a-4-5-v1:0": 1,
		"anthropic/claude-a-4-5[1m]": 1, "open/other/anthropic/claude-a-4.5": 1, "o/gpt-5.1": 4, "o/gpt-5-1": 4, "o/gpt-5.1-2026-01-02": 4, "o/gpt-5-1-mini": 5,
		"x/claude-a-4-51": 0, "x/claude-a-4": 0, "x/claude-a-4-5-new": 0, "x/gpt-5": 0, "x/gpt-5x1": 0, "": 0, "/": 0, "x/-20260202": 0, "x/@": 0,
		"x/claude-a-4-5:free": 0,
	} {
		of, ok := table.find(model)
		require.Equal(t, want != 0, ok, model)
		require.Equal(t, want, of.input, model)
	}
}

// TestCallsOfOtherModels: an answer's usage can have calls of other models, which count under their names, with a cost each,
// and not as answers.
func TestCallsOfOtherModels(t *testing.T) {
	line := answerOf("a", "cheap", `{"input":10,"modelCalls":[{"model":"plain","input":5,"output":1},{"model":"new","input":2},7,{"input":1}]}`)
	parent, s := acquired(t, line), acquired(t, line+answerOf("b", "cheap", `{"input":1,"modelCalls":{}}`))
	d, err := Usage(context.Background(), s, 0, parent, testPrices(t), Sum{})
	require.NoError(t, err)
	usage, text := parseUsage(t, d)
	require.Equal(t, "[19,1,0,0,20,0,81]", usage.Total.numbers(), text)
	require.Equal(t, "[1,0,0,0,1,0,1]", usage.Own.numbers(), text)
	require.Equal(t, "[18,1,0,0,19,0,80]", usage.Branch.Total.numbers(), text)
	require.Equal(t, []int{2, 2}, []int{usage.Total.AssistantMessages, usage.Total.Unpriced})
	require.Equal(t, "[5,1,0,0,6,0,70]", usage.Models["p/plain"].numbers(), text)
	require.Equal(t, "[11,0,0,0,11,0,11]", usage.Models["p/cheap"].numbers(), text)
	many := answerOf("a", "cheap", `{"modelCalls":[`+strings.Repeat(`{},`, 100_000)+`{}]}`)
	records, err := usageRecordsOf(context.Background(), acquired(t, many))
	require.NoError(t, err)
	require.LessOrEqual(t, len(records), maxParts+1)
}

// paidLine is an answer that cost something.
func paidLine(id, second, cost string) string {
	return `{"type":"message","id":"` + id + `","parentId":null,"timestamp":"2026-02-16T10:00:` + second +
		`.000Z","message":{"role":"assistant","provider":"p","model":"m",` +
		`"usage":{"input":1,"cost":{"total":` + cost + `}}}}` + "\n"
}

// TestOwn: what a session took over from its parent is not its own, however it was changed on the way, and everything
// else is.
func TestOwn(t *testing.T) {
	inherited := paidLine("a", "01", "1") + paidLine("b", "02", "2")
	noTime := strings.Replace(paidLine("t", "03", "4"), `"timestamp"`, `"when"`, 1)
	noID := strings.Replace(paidLine("i", "03", "8"), `"id"`, `"name"`, 1)
	task := `{"type":"message","id":"k","parentId":"a","timestamp":"2026-02-16T10:00:04.000Z",` +
		`"message":{"role":"toolResult","toolName":"task","details":{"usage":{"input":5,"cost":{"total":16}}}}}` + "\n"
	for name, c := range map[string]struct{ parent, child, want string }{
		"a fork with an answer of its own": {inherited + paidLine("c", "03", "4"), inherited + paidLine("d", "05", "32"), "[1,0,0,0,1,0,32]"},
		"a subagent's work is taken over":  {inherited + task, inherited + task, "[0,0,0,0,0,0,0]"},
		"the fork's copies cost nothing": {inherited, paidLine("a", "01", "0") + paidLine("b", "02", "0") + paidLine("d", "05", "32"),
			"[1,0,0,0,1,0,32]"},
		"other links, another time zone":        {inherited, strings.ReplaceAll(inherited, "T10:00:01.000Z", "T11:00:01+01:00"), "[0,0,0,0,0,0,0]"},
		"the same id at another time":           {inherited, paidLine("a", "02", "1"), "[1,0,0,0,1,0,1]"},
		"another id at the same time":           {inherited, paidLine("b", "01", "1"), "[1,0,0,0,1,0,1]"},
		"what has no time or no id is no copy":  {noTime + noID, noTime + noID, "[2,0,0,0,2,0,12]"},
		"the parent has nothing":                {"", inherited, "[2,0,0,0,2,0,3]"},
		"an id that the parent used repeatedly": {inherited + paidLine("a", "09", "1"), inherited, "[0,0,0,0,0,0,0]"},
	} {
		parent, child := acquired(t, c.parent), acquired(t, c.child)
		usage, _ := usageWith(t, child, parent, Prices{})
		require.Equal(t, c.want, usage.Own.numbers(), name)
		usage, _ = readUsage(t, child, sessioncore.NoEntry)
		require.Equal(t, usage.Total, usage.Own, name)
	}
}

func acquired(t *testing.T, entries string) *sessioncore.Snapshot {
	return sessiontest.Snapshot(t, newTestSession(t, sessiontest.Header+entries).session)
}

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
				lines += answer(0, fmt.Sprint(n), model, usage)
			}
			if imported {
				lines = strings.Replace(lines, `"parentId"`, `"origin":{"line":3},"parentId"`, 1)
			}
		}
		var got strings.Builder
		snap := snapshotOf(t, lines)
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
	name := filepath.Join(t.TempDir(), "prices.json")
	sessiontest.Table(t, "testdata/wrong-prices.txt", func(t *testing.T, _, text string) string {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		_, err := OpenPrices(name)
		require.Error(t, err)
		why, _, _ := strings.Cut(strings.ReplaceAll(err.Error(), name, "FILE"), ": json: ")
		return why
	})
	_, err := OpenPrices(filepath.Join(filepath.Dir(name), "missing"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = OpenPrices(filepath.Dir(name))
	require.ErrorContains(t, err, "not a file")
}

// TestPriceList: the list that comes along can be read, says its month, and has models of each provider; a file replaces some.
func TestPriceList(t *testing.T) {
	prices := ListPrices
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

func TestPriceOfAName(t *testing.T) {
	models, text := []string{"", "claude-a-4-5", "claude-a-4-5-20250101", "router/claude-a-4-5", "gpt-5.1", "gpt-5.1-mini"}, "{"
	for i, model := range models[1:] {
		text += fmt.Sprintf(`"%s":{"input_cost_per_token":%d,"output_cost_per_token":1},`, model, i+1)
	}
	table, err := readPrices([]byte(strings.TrimSuffix(text, ",") + "}"))
	require.NoError(t, err)
	sessiontest.Table(t, "testdata/price-names.txt", func(t *testing.T, _, model string) string {
		of, ok := table.find(model)
		require.Equal(t, ok, of.input > 0)
		return models[int(of.input)]
	})
}

// TestCallsOfOtherModels: an answer's usage can have calls of other models, which count under their names, with a cost each,
// and not as answers.
func TestCallsOfOtherModels(t *testing.T) {
	line := answer(0, "a", "cheap", `{"input":10,"modelCalls":[{"model":"plain","input":5,"output":1},{"model":"new","input":2},7,{"input":1}]}`)
	parent, s := snapshotOf(t, line), snapshotOf(t, line+answer(0, "b", "cheap", `{"input":1,"modelCalls":{}}`))
	d, err := Usage(context.Background(), s, 0, parent, testPrices(t), Sum{})
	require.NoError(t, err)
	usage, text := parseUsage(t, d)
	require.Equal(t, "[19,1,0,0,20,0,81]", usage.Total.numbers(), text)
	require.Equal(t, "[1,0,0,0,1,0,1]", usage.Own.numbers(), text)
	require.Equal(t, "[18,1,0,0,19,0,80]", usage.Branch.Total.numbers(), text)
	require.Equal(t, []int{2, 2}, []int{usage.Total.AssistantMessages, usage.Total.Unpriced})
	require.Equal(t, "[5,1,0,0,6,0,70]", usage.Models["p/plain"].numbers(), text)
	require.Equal(t, "[11,0,0,0,11,0,11]", usage.Models["p/cheap"].numbers(), text)
	many := answer(0, "a", "cheap", `{"modelCalls":[`+strings.Repeat(`{},`, 100_000)+`{}]}`)
	records, err := usageRecordsOf(context.Background(), snapshotOf(t, many))
	require.NoError(t, err)
	require.LessOrEqual(t, len(records), maxParts+1)
}

func TestOwn(t *testing.T) {
	snapshot := func(t *testing.T, answers string) *sessioncore.Snapshot {
		lines := ""
		for _, fields := range strings.Split(answers, ",") {
			var id, at, cost, line string
			if n, _ := fmt.Sscan(fields, &id, &at, &cost); n < 3 {
				continue
			}
			if usage := `{"input":1,"cost":{"total":` + cost + `}}`; id == "task" {
				line = messageAt(0, id, "", `{"role":"toolResult","toolName":"task","details":{"usage":`+usage+`}}`)
			} else {
				line = answer(0, id, "m", usage)
			}
			line = strings.Replace(line, `2026-01-05T09:00:00.000Z`, "2026-02-16T"+at, 1)
			lines += strings.NewReplacer(`"id":"-"`, `"name":"-"`, `"timestamp":"2026-02-16T-"`, `"when":"-"`).Replace(line)
		}
		return snapshotOf(t, lines)
	}
	sessiontest.Table(t, "testdata/own.txt", func(t *testing.T, _, give string) string {
		before, after, _ := strings.Cut(give, "|")
		parent, child := snapshot(t, before), snapshot(t, after)
		alone, _ := readUsage(t, child, sessioncore.NoEntry)
		require.Equal(t, alone.Total, alone.Own)
		usage, _ := usageWith(t, child, parent, Prices{})
		return usage.Own.numbers()
	})
}

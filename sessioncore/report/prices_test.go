package report

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/sessiontest"
)

const priceFile = `{
	"sample_spec": {"max_tokens": "a number", "input_cost_per_token": 0.0, "output_cost_per_token": 0.0, "mode": "chat"},
	"p/cheap": {"input_cost_per_token": 1, "output_cost_per_token": 2, "cache_read_input_token_cost": 0.25, "cache_creation_input_token_cost": 1.25},
	"plain": {"input_cost_per_token": 1e1, "output_cost_per_token": 20, "cache_read_input_token_cost": null},
	"embedding": {"input_cost_per_token": 1}
}`

func answerOf(id, model, usage string) string {
	return `{"type":"message","id":"` + id + `","parentId":null,"timestamp":"2026-05-01T00:00:00Z","message":{"role":"assistant","content":[],"provider":"p","model":"` +
		model + `","usage":` + usage + `}}` + "\n"
}

// cost is the whole cost, and how many answers are without one.
func (u usageTotals) cost() string {
	text := "none"
	if u.Cost.Total != nil {
		text = fmt.Sprint(*u.Cost.Total)
	}
	if u.Unpriced > 0 {
		text += fmt.Sprintf(", %d without", u.Unpriced)
	}
	return text
}

// TestPrices: tokens whose client recorded no cost have none, and not 0; with prices they have that of the provider's model or
// else of the model. A cost that was recorded stays, 0 too.
func TestPrices(t *testing.T) {
	const tokens = `"input":100,"output":10,"cacheRead":1000,"cacheWrite":4`
	prices, err := readPrices(strings.NewReader(priceFile))
	require.NoError(t, err)
	for name, c := range map[string]struct {
		lines    string
		without  string // the costs, and the number of answers without, in total
		with     string
		perModel int // how many models have a cost with prices
	}{
		"recorded":           {answerOf("a", "cheap", `{`+tokens+`,"cost":{"input":1,"total":3}}`), "3", "3", 1},
		"recorded as 0":      {answerOf("a", "cheap", `{`+tokens+`,"cost":{"total":0}}`), "0", "0", 1},
		"the provider's":     {answerOf("a", "cheap", `{`+tokens+`}`), "none, 1 without", "375", 1},
		"the model's":        {answerOf("a", "plain", `{`+tokens+`}`), "none, 1 without", "11240", 1},
		"unknown":            {answerOf("a", "embedding", `{`+tokens+`}`), "none, 1 without", "none, 1 without", 0},
		"of several":         {answerOf("a", "cheap", `{`+tokens+`}`) + answerOf("b", "new", `{`+tokens+`}`), "none, 2 without", "375, 1 without", 1},
		"beside a recorded":  {answerOf("a", "cheap", `{`+tokens+`}`) + answerOf("b", "cheap", `{"input":1,"cost":{"total":5}}`), "5, 1 without", "380", 1},
		"without tokens":     {answerOf("a", "cheap", `{"input":0}`), "0", "0", 1},
		"a session of none":  {"", "0", "0", 0},
		"a usage of nothing": {answerOf("a", "cheap", `null`), "0", "0", 1},
	} {
		s := sessiontest.Snapshot(t, newTestSession(t, sessiontest.Header+c.lines).session)
		for _, of := range []struct {
			prices Prices
			want   string
		}{{Prices{}, c.without}, {prices, c.with}} {
			d, err := Usage(context.Background(), s, sessioncore.NoEntry, nil, of.prices)
			require.NoError(t, err)
			usage, text := parseUsage(t, d)
			require.Equal(t, of.want, usage.Total.cost(), "%s: %s", name, text)
			require.Equal(t, usage.Total, usage.Own)
			priced := 0
			for _, sums := range usage.Models {
				if sums.Cost.Total != nil {
					priced++
				}
			}
			if of.want == c.with {
				require.Equal(t, c.perModel, priced, "%s: %s", name, text)
			}
		}
	}
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
		`{"a":{"input_cost_per_token":1,"output_cost_per_token":1}`:    "EOF",
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
	none, err := OpenPrices("")
	require.NoError(t, err)
	require.Zero(t, none)
}

// paidLine is an answer that cost something.
func paidLine(id, second, cost string) string {
	return `{"type":"message","id":"` + id + `","parentId":null,"timestamp":"2026-02-16T10:00:` + second + `.000Z","message":{"role":"assistant","provider":"p","model":"m",` +
		`"usage":{"input":1,"cost":{"total":` + cost + `}}}}` + "\n"
}

// TestOwn: what a session took over from its parent is not its own, however it was changed on the way, and everything
// else is.
func TestOwn(t *testing.T) {
	inherited := paidLine("a", "01", "1") + paidLine("b", "02", "2")
	noTime := strings.Replace(paidLine("t", "03", "4"), `"timestamp"`, `"when"`, 1)
	noID := strings.Replace(paidLine("i", "03", "8"), `"id"`, `"name"`, 1)
	task := `{"type":"message","id":"k","parentId":"a","timestamp":"2026-02-16T10:00:04.000Z","message":{"role":"toolResult","toolName":"task","details":{"usage":{"input":5,"cost":{"total":16}}}}}` + "\n"
	for name, c := range map[string]struct{ parent, child, want string }{
		"a fork with an answer of its own":      {inherited + paidLine("c", "03", "4"), inherited + paidLine("d", "05", "32"), "[1,0,0,0,1,0,32]"},
		"a subagent's work is taken over":       {inherited + task, inherited + task, "[0,0,0,0,0,0,0]"},
		"the fork's copies cost nothing":        {inherited, paidLine("a", "01", "0") + paidLine("b", "02", "0") + paidLine("d", "05", "32"), "[1,0,0,0,1,0,32]"},
		"other links, another time zone":        {inherited, strings.ReplaceAll(inherited, "T10:00:01.000Z", "T11:00:01+01:00"), "[0,0,0,0,0,0,0]"},
		"the same id at another time":           {inherited, paidLine("a", "02", "1"), "[1,0,0,0,1,0,1]"},
		"another id at the same time":           {inherited, paidLine("b", "01", "1"), "[1,0,0,0,1,0,1]"},
		"what has no time or no id is no copy":  {noTime + noID, noTime + noID, "[2,0,0,0,2,0,12]"},
		"the parent has nothing":                {"", inherited, "[2,0,0,0,2,0,3]"},
		"an id that the parent used repeatedly": {inherited + paidLine("a", "09", "1"), inherited, "[0,0,0,0,0,0,0]"},
	} {
		parent, child := acquired(t, c.parent), acquired(t, c.child)
		d, err := Usage(context.Background(), child, sessioncore.NoEntry, parent, Prices{})
		require.NoError(t, err, name)
		usage, _ := parseUsage(t, d)
		require.Equal(t, c.want, usage.Own.numbers(), name)
		usage, _ = readUsage(t, child, sessioncore.NoEntry)
		require.Equal(t, usage.Total, usage.Own, name)
	}
}

func acquired(t *testing.T, entries string) *sessioncore.Snapshot {
	return sessiontest.Snapshot(t, newTestSession(t, sessiontest.Header+entries).session)
}

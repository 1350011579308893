package report

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
)

// spent is the usage of an answer with tokens of the input, behind which the client recorded the session's cost.
func spent(id, model string, input int, sessionCost string) string {
	usage := fmt.Sprintf(`{"input":%d`, input)
	if sessionCost != "" {
		usage += `,"sessionCost":` + sessionCost
	}
	return answerOf(id, model, usage+"}")
}

// TestSessionCost: the cost of a session that its client recorded is shared out among the answers before it by model. Answers
// behind it have list prices, and models without an answer count too.
func TestSessionCost(t *testing.T) {
	table, err := readPrices([]byte(priceFile))
	require.NoError(t, err)
	for name, c := range map[string]struct {
		lines  string
		total  string
		listed float64
		models map[string]float64
	}{
		"of one answer": {spent("a", "new", 10, `{"total":1.25,"models":{"new":1.25}}`), "1.25", 0, map[string]float64{"p/new": 1.25}},
		"by tokens":     {spent("a", "new", 30, "") + spent("b", "new", 10, `{"total":4,"models":{"new":4}}`), "4", 0, map[string]float64{"p/new": 4}},
		"of several models": {spent("a", "x", 30, "") + spent("b", "y", 10, `{"total":5,"models":{"x":4,"y":1}}`), "5", 0,
			map[string]float64{"p/x": 4, "p/y": 1}},
		"without models":        {spent("a", "x", 30, `{"total":5}`), "5", 0, map[string]float64{"p/x": 5}},
		"of models without any": {spent("a", "x", 30, `{"total":5,"models":{"x":4,"tiny":0.5}}`), "5", 0, map[string]float64{"p/x": 4.5, "p/tiny": 0.5}},
		"of a longer context":   {spent("a", "x", 30, `{"total":4,"models":{"x[1m]":3,"x":1}}`), "4", 0, map[string]float64{"p/x": 4}},
		"and on": {spent("a", "cheap", 30, `{"total":4,"models":{"cheap":4}}`) + spent("b", "cheap", 7, ""), "11", 7,
			map[string]float64{"p/cheap": 11}},
		"twice": {spent("a", "x", 30, `{"total":4,"models":{"x":4}}`) + spent("b", "x", 7, `{"total":6,"models":{"x":6}}`), "6", 0,
			map[string]float64{"p/x": 6}},
		"begun anew": {spent("a", "x", 30, `{"total":4,"models":{"x":4}}`) + spent("b", "x", 7, `{"total":1,"models":{"x":1}}`), "5", 0,
			map[string]float64{"p/x": 5}},
		"of nothing":  {spent("a", "cheap", 30, `{"total":0,"models":{}}`), "30", 30, map[string]float64{"p/cheap": 30}},
		"odd":         {spent("a", "cheap", 30, `7`), "30", 30, map[string]float64{"p/cheap": 30}},
		"odd numbers": {spent("a", "cheap", 30, `{"total":"x","models":{"cheap":-5,"y":1e999}}`), "0", 0, map[string]float64{"p/cheap": 0}},
	} {
		d, err := Usage(context.Background(), acquired(t, c.lines), sessioncore.NoEntry, nil, Prices{file: table}, Sum{})
		require.NoError(t, err)
		usage, text := parseUsage(t, d)
		require.Equal(t, c.total, usage.Total.cost(), "%s: %s", name, text)
		require.InDelta(t, c.listed, usage.Total.Listed, 1e-9, name)
		for model, want := range c.models {
			require.InDelta(t, want, *usage.Models[model].Cost.Total, 1e-9, "%s: %s: %s", name, model, text)
		}
	}
}

// TestShares: an answer's part of a recorded cost goes by the prices of its tokens.
func TestShares(t *testing.T) {
	lines := answerOf("a", "x", `{"output":10}`) + spent("b", "x", 50, `{"total":4,"models":{"x":4}}`)
	costs, err := costsOf(context.Background(), acquired(t, lines), Prices{list: true})
	require.NoError(t, err)
	require.Len(t, costs.records, 2)
	require.EqualValues(t, 2, costs.records[0].Cost.Total)
	require.EqualValues(t, 2, costs.records[1].Cost.Total)
	require.Equal(t, []cover{{math.MinInt64, math.MaxInt64, false}}, costs.covers)
	left, ok := costs.records[0].beyond(costs.covers)
	require.True(t, ok)
	require.Equal(t, usageCost{known: true}, left.Cost)
	require.Equal(t, costs.records[0].Sum.TotalTokens, left.TotalTokens)
}

// TestCovers: a result that reports a usage covers the time since its call, in however long a row of results.
func TestCovers(t *testing.T) {
	at := func(line string, id, parent, second string) string {
		return fmt.Sprintf(`{"type":"message","id":%q,"parentId":%s,"timestamp":"2026-02-16T10:00:%s.000Z","message":%s}`+"\n", id, parent, second, line)
	}
	task := func(usage string) string {
		return `{"role":"toolResult","toolName":"task","content":[],"details":{` + usage + `}}`
	}
	const used = `"usage":{"input":5,"cost":{"total":1}}`
	lines := at(`{"role":"assistant","content":[]}`, "a", "null", "01") + at(task(used), "b", `"a"`, "05") + at(task(used), "c", `"b"`, "07") +
		at(task(""), "d", `"c"`, "08") + at(task(used), "e", `null`, "09")
	snap := acquired(t, lines)
	costs, err := costsOf(context.Background(), snap, Prices{})
	require.NoError(t, err)
	first := snap.Time(0).UnixMilli()
	require.Equal(t, []cover{{first, first + 4000, true}, {first, first + 6000, true}, {first + 8000, first + 8000, true}}, costs.covers)
	for ms, covered := range map[int64]bool{-1: false, 0: true, 6000: true, 6001: false, 8000: true} {
		_, ok := (&usageRecord{time: first + ms}).beyond(costs.covers)
		require.Equal(t, covered, !ok, ms)
	}
}

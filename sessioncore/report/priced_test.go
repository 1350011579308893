package report

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestShares: an answer's part of a recorded cost goes by the prices of its tokens.
func TestShares(t *testing.T) {
	lines := answerOf("a", "x", `{"output":10}`) + answerOf("b", "x", `{"input":50,"sessionCost":{"total":4,"models":{"x":4}}}`)
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

package report

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestShares: an answer's part of a recorded cost goes by the prices of its tokens.
func TestShares(t *testing.T) {
	lines := answer(0, "a", "x", `{"output":10}`) + answer(0, "b", "x", `{"input":50,"sessionCost":{"total":4,"models":{"x":4}}}`)
	costs, err := costsOf(context.Background(), snapshotOf(t, lines), Prices{list: true})
	require.NoError(t, err)
	require.Len(t, costs.records, 2)
	require.EqualValues(t, 2, costs.records[0].Cost.Total.Float())
	require.EqualValues(t, 2, costs.records[1].Cost.Total.Float())
	require.Equal(t, []cover{{math.MinInt64, math.MaxInt64, false}}, costs.covers)
	left, ok := costs.records[0].beyond(costs.covers)
	require.True(t, ok)
	require.Equal(t, usageCost{known: true}, left.Cost)
	require.Equal(t, costs.records[0].Sum.TotalTokens, left.TotalTokens)
}

// TestCovers: a result that reports a usage covers the time since its call, in however long a row of results.
func TestCovers(t *testing.T) {
	task := func(usage string) string {
		return `{"role":"toolResult","toolName":"task","content":[],"details":{` + usage + `}}`
	}
	const used = `"usage":{"input":5,"cost":{"total":1}}`
	lines := messageAt(1, "a", "", `{"role":"assistant","content":[]}`) + messageAt(5, "b", "a", task(used)) + messageAt(7, "c", "b", task(used)) +
		messageAt(8, "d", "c", task("")) + messageAt(9, "e", "", task(used))
	snap := snapshotOf(t, lines)
	costs, err := costsOf(context.Background(), snap, Prices{})
	require.NoError(t, err)
	first := snap.Time(0).UnixMilli()
	require.Equal(t, []cover{{first, first + 4000, true}, {first, first + 6000, true}, {first + 8000, first + 8000, true}}, costs.covers)
	for ms, covered := range map[int64]bool{-1: false, 0: true, 6000: true, 6001: false, 8000: true} {
		_, ok := (&usageRecord{time: first + ms}).beyond(costs.covers)
		require.Equal(t, covered, !ok, ms)
	}
}

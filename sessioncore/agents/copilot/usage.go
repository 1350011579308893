package copilot

import (
	"maps"
	"math"
	"slices"
	"strconv"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// tokenCounts counts the tokens of answers. New clients tell those of each call of the model, before its
// answer. Old ones tell of an answer only the tokens that it has, and at the end of a run the
// totals of the session or of the run.
type tokenCounts struct {
	calls  map[string]agents.Usage // of calls whose answers are to come
	last   string                  // the call with the answer that was counted last
	spoken float64                 // the tokens that answers told since the totals before
	told   bool                    // calls were told since then
	totals map[string]totals       // the totals before, by model
}

// totals are numbers of requests and of tokens: of the input with those of the cache, of the
// output, read from the cache and written to it; and of the requests that are billed.
type totals [6]float64

func newUsage() tokenCounts {
	return tokenCounts{calls: map[string]agents.Usage{}, totals: map[string]totals{}}
}

// totalsOf returns the numbers of a usage.
func totalsOf(usage agents.Object, requests, billed rawjson.Value) (t totals) {
	for i, v := range [...]rawjson.Value{
		requests, usage.Member("inputTokens"), usage.Member("outputTokens"), usage.Member("cacheReadTokens"),
		usage.Member("cacheWriteTokens"), billed,
	} {
		n, err := strconv.ParseFloat(string(v), 64)
		if err == nil && n > 0 && n < 1<<50 {
			t[i] = n
		}
	}
	return t
}

// tokens returns the tokens as a session has them.
func (t totals) tokens() agents.Usage {
	count := func(n float64) int64 { return int64(max(0, n)) }
	billed := math.Round(max(0, t[5])*1e9) / 1e9 // differences of doubles have noise
	u := agents.Usage{
		Input:   count(t[1] - t[3] - t[4]),
		Output:  count(t[2]),
		Premium: billed,
	}
	u.CacheRead = count(t[3])
	u.CacheWrite = count(t[4])
	u.Total = u.Input + u.Output + u.CacheRead + u.CacheWrite
	return u
}

// note notes an event of any agent in the file.
func (u *tokenCounts) note(typ, agent string, data agents.Object) {
	switch typ {
	case "session.usage_record":
		of := agents.Read(data.Member("usage"))
		call, _ := of.Member("apiCallId").Text()
		billed := of.Member("cost")
		if !of.Member("initiator").Is("user") {
			billed = nil
		}
		u.calls[agent+" "+call] = totalsOf(of, nil, billed).tokens()
		u.told = true
	case "assistant.message":
		u.spoken += totalsOf(data, nil, nil)[2]
	}
}

// of returns the tokens that an event adds to the answer of a call.
func (u *tokenCounts) of(agent, call string, data agents.Object) agents.Usage {
	key := agent + " " + call
	used, ok := u.calls[key]
	switch {
	case ok:
		delete(u.calls, key)
		u.last = key
	case key != u.last || call == "": // else it is another part of the answer that was counted
		used = totals{2: totalsOf(data, nil, nil)[2]}.tokens()
	}
	return used
}

// rest returns the tokens in the totals of the session that no answer has. They are none where
// calls were told. Totals that are smaller than those before, or are those of the answers since
// then, began anew.
func (u *tokenCounts) rest(data agents.Object) agents.Usage {
	now := map[string]totals{}
	spoken := 0.0
	for m := range data.Member("modelMetrics").EachMember {
		requests := m.Value.Member("requests")
		t := totalsOf(agents.Read(m.Value.Member("usage")), requests.Member("count"), requests.Member("cost"))
		now[m.Name()] = t
		spoken += t[2]
	}
	isNew := u.spoken > 0 && spoken == u.spoken || len(now) < len(u.totals)
	for model, t := range now {
		before := u.totals[model]
		isNew = isNew || t[0] < before[0] || t[1] < before[1] || t[2] < before[2]
	}
	if isNew {
		clear(u.totals)
	}
	sum := totals{2: -u.spoken}
	for _, model := range slices.Sorted(maps.Keys(now)) {
		for i := range sum {
			sum[i] += now[model][i] - u.totals[model][i]
		}
	}
	told := u.told
	u.totals = now
	u.spoken = 0
	u.told = false
	if told {
		return agents.Usage{}
	}
	return sum.tokens()
}

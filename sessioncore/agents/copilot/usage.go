package copilot

import (
	"maps"
	"math"
	"slices"
	"strconv"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// tokenCounts counts the tokens of answers. New clients write the tokens of each call of the model, before its
// answer. Old clients write for an answer only its output, and at the end of a run the totals of the session
// or of the run.
type tokenCounts struct {
	calls  map[string]agents.Usage // the tokens of calls that have no answer yet
	last   string                  // the call with the answer that was counted last
	spoken float64                 // the output of answers since the totals before
	ofCall bool                    // the client wrote tokens of calls since then
	totals map[string]totals       // the totals before, by model
}

// totals are the numbers of a usage, at the indexes below.
type totals [6]float64

const (
	requestsAt   = iota
	inputAt      // tokens, with cache reads and writes
	outputAt     // tokens
	cacheReadAt  // tokens
	cacheWriteAt // tokens
	billedAt     // requests that are billed
)

// maxTotal is more than any number of tokens. Sums of smaller numbers are exact, as doubles have 53 bits.
const maxTotal = 1 << 50

// newUsage returns counts before the first event.
func newUsage() tokenCounts {
	return tokenCounts{calls: map[string]agents.Usage{}, totals: map[string]totals{}}
}

// totalsOf returns the numbers of a usage, 0 for those that are missing, wrong or larger than any real one.
func totalsOf(usage agents.Object, requests, billed rawjson.Value) (t totals) {
	members := [...]rawjson.Value{
		requestsAt:   requests,
		inputAt:      usage.Member("inputTokens"),
		outputAt:     usage.Member("outputTokens"),
		cacheReadAt:  usage.Member("cacheReadTokens"),
		cacheWriteAt: usage.Member("cacheWriteTokens"),
		billedAt:     billed,
	}
	for i, member := range members {
		n, err := strconv.ParseFloat(string(member), 64)
		if err == nil && n > 0 && n < maxTotal {
			t[i] = n
		}
	}
	return t
}

// tokens returns the tokens as a session has them, without those below 0, as differences may have.
func (t totals) tokens() agents.Usage {
	count := func(n float64) int64 {
		return int64(max(0, n))
	}
	billed := max(0, t[billedAt])
	uncached := t[inputAt] - t[cacheReadAt] - t[cacheWriteAt]
	u := agents.Usage{
		Input:      count(uncached),
		Output:     count(t[outputAt]),
		CacheRead:  count(t[cacheReadAt]),
		CacheWrite: count(t[cacheWriteAt]),
		Premium:    math.Round(billed*1e9) / 1e9, // differences of doubles have noise
	}
	u.Total = u.Input + u.Output + u.CacheRead + u.CacheWrite
	return u
}

// note notes the tokens in an event of any agent in the file, for of and rest.
func (u *tokenCounts) note(typ, agent string, data agents.Object) {
	switch typ {
	case "session.usage_record":
		usage := agents.Read(data.Member("usage"))
		call, _ := usage.Member("apiCallId").Text()
		billed := usage.Member("cost")
		if !usage.Member("initiator").Is("user") { // else cost is not the number of requests
			billed = nil
		}
		used := totalsOf(usage, nil, billed)
		u.calls[agent+" "+call] = used.tokens()
		u.ofCall = true
	case "assistant.message":
		answer := totalsOf(data, nil, nil)
		u.spoken += answer[outputAt]
	}
}

// of returns the tokens that an event adds to the answer of a call of the model: those that the client wrote for the call,
// once, or else the output in the event.
func (u *tokenCounts) of(agent, call string, data agents.Object) agents.Usage {
	key := agent + " " + call
	used, ok := u.calls[key]
	if ok {
		delete(u.calls, key)
		u.last = key
		return used
	}
	isCounted := key == u.last && call != "" // it is another part of the same answer
	if isCounted {
		return agents.Usage{}
	}
	answer := totalsOf(data, nil, nil)
	output := totals{outputAt: answer[outputAt]}
	return output.tokens()
}

// rest returns the tokens in the totals of the session that no answer has. There are none where the client wrote
// tokens of calls. Totals count from zero again after a restart: they are smaller than the totals before, or equal
// to the sum of the answers since then.
func (u *tokenCounts) rest(data agents.Object) agents.Usage {
	now := map[string]totals{}
	spoken := 0.0
	for m := range data.Member("modelMetrics").EachMember {
		usage := agents.Read(m.Value.Member("usage"))
		requests := m.Value.Member("requests")
		t := totalsOf(usage, requests.Member("count"), requests.Member("cost"))
		now[m.Name()] = t
		spoken += t[outputAt]
	}
	isOfAnswers := u.spoken > 0 && spoken == u.spoken
	hasRestarted := isOfAnswers || u.areSmaller(now)
	if hasRestarted {
		clear(u.totals)
	}
	sum := totals{outputAt: -u.spoken} // the answers have that output
	for _, model := range slices.Sorted(maps.Keys(now)) {
		before := u.totals[model]
		for i, n := range now[model] {
			sum[i] += n - before[i]
		}
	}
	isCounted := u.ofCall
	u.totals = now
	u.spoken = 0
	u.ofCall = false
	if isCounted {
		return agents.Usage{}
	}
	return sum.tokens()
}

// areSmaller reports whether totals by model are smaller than the totals before.
func (u *tokenCounts) areSmaller(now map[string]totals) bool {
	if len(now) < len(u.totals) {
		return true
	}
	for model, t := range now {
		before := u.totals[model]
		for _, i := range []int{requestsAt, inputAt, outputAt} {
			if t[i] < before[i] {
				return true
			}
		}
	}
	return false
}

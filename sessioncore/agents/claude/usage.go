package claude

import (
	"strconv"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// This file converts the client's usage and its costs (docs/format.md, Cost).

// counted is a part of an answer that another answer interrupts.
type counted struct {
	line  int64 // its first one
	total int64 // the tokens of its largest usage
}

// count sets the usage of an answer by the record with the largest one, the last of equal ones. An
// answer that another one interrupts is counted with the part that has this record. usage and model are a record's;
// a usage that is no object changes nothing.
func (c *converter) count(a *answer, usage, model rawjson.Value) {
	if !usage.IsObject() || string(usage) == string(a.usage) {
		return
	}
	a.usage = append(a.usage[:0], usage...) // also for isOther
	isOfOtherSession := c.Path != ""
	if c.Words || isOfOtherSession {
		return
	}
	u, iterations := usageOf(usage)
	if u.Total < a.total {
		return
	}
	a.total = u.Total
	if c.isLargest(a) {
		a.Set(u, callsIn(iterations, model))
	}
}

// isLargest reports whether no other part of an answer has a larger usage, as far as this and earlier readings tell. It
// notes the part in c.counted, and learns of a part that has a larger usage than those before, as those must not count.
func (c *converter) isLargest(a *answer) bool {
	if a.key == "" {
		return true
	}
	line := a.Lines[0]
	other, isKnown := c.counted[a.key]
	if isKnown && other.line != line {
		if a.total < other.total {
			return false
		}
		if line > c.learned.last[a.key] {
			learn(c, c.learned.last, a.key, line)
		}
	}
	c.counted[a.key] = counted{line: line, total: a.total}
	return line >= c.learned.last[a.key]
}

// callsIn returns the usage of other models' calls, as JSON objects with commas between them. model is the answer's,
// which makes a compaction that names none.
func callsIn(iterations, model rawjson.Value) (calls []byte) {
	for call := range iterations.EachElement {
		typ := call.Member("type")
		isCompaction := typ.Is("compaction")
		if !isCompaction && !typ.Is("advisor_message") { // other calls are in the answer's own numbers
			continue
		}
		by := call.Member("model")
		switch {
		case by.IsString():
		case isCompaction && model.IsString():
			by = model
		default:
			by = rawjson.Value(`"unknown"`)
		}
		if len(calls) > 0 {
			calls = append(calls, ',')
		}
		calls = append(calls, `{"model":`...)
		calls = append(calls, by...)
		calls = append(calls, ',')
		u, _ := usageOf(call)
		calls = u.AppendMembers(calls)
		calls = append(calls, '}')
	}
	return calls
}

// usageOf returns the tokens that a usage tells, and its list of calls of models, which may be missing.
func usageOf(v rawjson.Value) (u agents.Usage, iterations rawjson.Value) {
	var written rawjson.Value
	for m := range v.EachMember {
		switch string(m.Key) {
		case `"input_tokens"`:
			u.Input = agents.Count(m.Value)
		case `"output_tokens"`:
			u.Output = agents.Count(m.Value)
		case `"cache_read_input_tokens"`:
			u.CacheRead = agents.Count(m.Value)
		case `"cache_creation_input_tokens"`:
			u.CacheWrite = agents.Count(m.Value)
		case `"cache_creation"`:
			written = m.Value
		case `"speed"`:
			u.Fast = m.Value.Is("fast")
		case `"iterations"`:
			iterations = m.Value
		}
	}
	if written.IsObject() {
		addCacheWrites(&u, written)
	}
	u.Total = u.Input + u.Output + u.CacheRead + u.CacheWrite
	return u, iterations
}

// addCacheWrites sets the tokens of a cache's two lifetimes. Their sum counts if it is larger than the number of all.
func addCacheWrites(u *agents.Usage, written rawjson.Value) {
	forMinutes := int64(0)
	for m := range written.EachMember {
		switch string(m.Key) {
		case `"ephemeral_1h_input_tokens"`:
			u.CacheWrite1h = agents.Count(m.Value)
		case `"ephemeral_5m_input_tokens"`:
			forMinutes = agents.Count(m.Value)
		}
	}
	u.CacheWrite = max(u.CacheWrite, u.CacheWrite1h+forMinutes)
}

// setCost sets the session's cost so far, by model, as recorded. It belongs to the open answer or, if there is none, to
// the next one, until which c.cost has it.
func (c *converter) setCost(r *record) {
	total := r.Member("totalCostUSD")
	if !isCost(total) {
		return
	}
	dst := append(c.cost[:0], `"sessionCost":{"total":`...)
	dst = append(dst, total...)
	dst = append(dst, `,"models":{`...)
	for m := range r.Member("modelUsage").EachMember {
		cost := m.Value.Member("costUSD")
		if !isCost(cost) {
			continue
		}
		isFirst := dst[len(dst)-1] == '{'
		if !isFirst {
			dst = append(dst, ',')
		}
		dst = append(dst, m.Key...)
		dst = append(dst, ':')
		dst = append(dst, cost...)
	}
	c.cost = append(dst, "}}"...)
	a := c.Open()
	if a != nil {
		a.Cost(c.cost)
		c.cost = c.cost[:0]
	}
}

// isCost reports whether a value is an amount of money.
func isCost(v rawjson.Value) bool {
	cost, err := strconv.ParseFloat(string(v), 64)
	return v.IsNumber() && err == nil && cost >= 0
}

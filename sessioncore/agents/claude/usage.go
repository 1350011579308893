package claude

import (
	"strconv"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// This file converts the client's usage and its costs (docs/format.md, Cost).

// counted is a part of an answer that another answer interrupts.
type counted struct{ line, total int64 } // its first line, and the tokens of its largest usage

// count sets the usage of an answer by the record with the largest one, the last of equal ones. An
// answer that another one interrupts is counted with the part that has this record.
func (c *converter) count(a *answer, usage, model rawjson.Value) {
	if !usage.IsObject() || string(usage) == string(a.usage) {
		return
	}
	a.usage = append(a.usage[:0], usage...)
	if c.Words {
		return
	}
	u, iterations := usageOf(usage)
	if u.Total < a.total || c.Path != "" {
		return
	}
	a.total = u.Total
	if c.isLargest(a) {
		a.Set(u, callsIn(iterations, model))
	}
}

// isLargest reports whether no other part of an answer has a larger usage. It learns of the parts
// that have a larger one than those before.
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

// callsIn returns the usage of other models' calls, as JSON objects with commas between them.
func callsIn(iterations, model rawjson.Value) (calls []byte) {
	for call := range iterations.EachElement {
		by := call.Member("model")
		typ := call.Member("type")
		switch {
		case !typ.Is("advisor_message") && !typ.Is("compaction"):
			continue
		case by.IsString():
		case typ.Is("compaction") && model.IsString():
			by = model
		default:
			by = rawjson.Value(`"unknown"`)
		}
		if len(calls) > 0 {
			calls = append(calls, ',')
		}
		u, _ := usageOf(call)
		calls = append(append(append(calls, `{"model":`...), by...), ',')
		calls = append(u.AppendMembers(calls), '}')
	}
	return calls
}

// usageOf returns the tokens of an answer, and its list of calls of models.
func usageOf(v rawjson.Value) (u agents.Usage, iterations rawjson.Value) {
	var cached rawjson.Value
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
			cached = m.Value
		case `"speed"`:
			u.Fast = m.Value.Is("fast")
		case `"iterations"`:
			iterations = m.Value
		}
	}
	if cached.IsObject() {
		short := int64(0)
		for m := range cached.EachMember {
			switch string(m.Key) {
			case `"ephemeral_1h_input_tokens"`:
				u.CacheWrite1h = agents.Count(m.Value)
			case `"ephemeral_5m_input_tokens"`:
				short = agents.Count(m.Value)
			}
		}
		u.CacheWrite = max(u.CacheWrite, u.CacheWrite1h+short)
	}
	u.Total = u.Input + u.Output + u.CacheRead + u.CacheWrite
	return u, iterations
}

// setCost sets the session's cost so far, by model, as recorded. It belongs to the last answer or,
// if that is written, to the next one.
func (c *converter) setCost(r *record) {
	total := r.Member("totalCostUSD")
	if !isCost(total) {
		return
	}
	dst := append(append(c.cost[:0], `"sessionCost":{"total":`...), total...)
	dst = append(dst, `,"models":{`...)
	for m := range r.Member("modelUsage").EachMember {
		if cost := m.Value.Member("costUSD"); isCost(cost) {
			if dst[len(dst)-1] != '{' {
				dst = append(dst, ',')
			}
			dst = append(append(append(dst, m.Key...), ':'), cost...)
		}
	}
	c.cost = append(dst, "}}"...)
	if a := c.Open(); a != nil {
		a.Cost(c.cost)
		c.cost = c.cost[:0]
	}
}

// isCost reports whether a value is an amount of money.
func isCost(v rawjson.Value) bool {
	cost, err := strconv.ParseFloat(string(v), 64)
	return v.IsNumber() && err == nil && cost >= 0
}

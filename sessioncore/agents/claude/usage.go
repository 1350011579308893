package claude

import (
	"strconv"
	"time"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// This file converts the client's usage and its costs (docs/format.md, Cost).

// laterDay returns the time in ms of an answer's last record if its day, in UTC or in local time,
// is a later one, else 0.
func laterDay(first, last rawjson.Value) int64 {
	start, _, timed := rawjson.ReadTimestamp(first)
	ended, _, ok := rawjson.ReadTimestamp(last)
	if !timed || !ok || start < 0 || ended <= start {
		return 0
	}
	for _, zone := range []*time.Location{time.UTC, time.Local} {
		year, month, day := time.UnixMilli(start).In(zone).Date()
		if tomorrow := time.Date(year, month, day+1, 0, 0, 0, 0, zone); !time.UnixMilli(ended).Before(tomorrow) {
			return ended
		}
	}
	return 0
}

// spent has the raw usage, model and time of an answer's last record, which counts.
type spent struct{ usage, model, time rawjson.Value }

func (s *spent) set(usage, model, time rawjson.Value) {
	s.usage, s.model, s.time = append(s.usage[:0], usage...), append(s.model[:0], model...), append(s.time[:0], time...)
}

// empty returns an empty spent in the same memory.
func (s *spent) empty() spent { return spent{s.usage[:0], s.model[:0], s.time[:0]} }

// appendTo appends the member usage of an answer that began at a time. cost is a member or empty.
func (s *spent) appendTo(dst []byte, start rawjson.Value, cost []byte) []byte {
	switch {
	case s.usage.IsObject():
		dst = append(append(dst, `,"usage":{`...), cost...)
		if len(cost) > 0 {
			dst = append(dst, ',')
		}
		return appendUsage(dst, s.usage, s.model, laterDay(start, s.time))
	case len(cost) > 0:
		return append(append(append(dst, `,"usage":{`...), cost...), '}')
	}
	return dst
}

// appendUsage appends the members of an answer's usage and the end of their object, with the calls
// of other models. ended is as in agents.Usage.
func appendUsage(dst []byte, usage, model rawjson.Value, ended int64) []byte {
	u, iterations := usageOf(usage)
	u.Ended = ended
	dst = append(u.AppendMembers(dst), '}')
	first := true
	iterations.EachElement(func(call rawjson.Value, _ int) bool {
		typ := call.Member("type")
		if !typ.Is("advisor_message") && !typ.Is("compaction") {
			return true
		}
		dst = dst[:len(dst)-len("}")]
		if first {
			dst = append(dst, `,"modelCalls":[`...)
		} else {
			dst = append(dst[:len(dst)-len("]")], ',')
		}
		first = false
		dst = append(dst, `{"model":`...)
		if by := call.Member("model"); by.IsString() {
			dst = append(dst, by...)
		} else if typ.Is("compaction") && model.IsString() {
			dst = append(dst, model...)
		} else {
			dst = append(dst, `"unknown"`...)
		}
		u, _ := usageOf(call)
		dst = append(u.AppendMembers(append(dst, ',')), "}]}"...)
		return true
	})
	return dst
}

// usageOf returns the tokens of an answer, and its list of calls of models.
func usageOf(v rawjson.Value) (u agents.Usage, iterations rawjson.Value) {
	var cached rawjson.Value
	v.EachMember(func(m rawjson.Member) bool {
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
		return true
	})
	if cached.IsObject() {
		short := int64(0)
		cached.EachMember(func(m rawjson.Member) bool {
			switch string(m.Key) {
			case `"ephemeral_1h_input_tokens"`:
				u.CacheWrite1h = agents.Count(m.Value)
			case `"ephemeral_5m_input_tokens"`:
				short = agents.Count(m.Value)
			}
			return true
		})
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
	r.Member("modelUsage").EachMember(func(m rawjson.Member) bool {
		if cost := m.Value.Member("costUSD"); isCost(cost) {
			if dst[len(dst)-1] != '{' {
				dst = append(dst, ',')
			}
			dst = append(append(append(dst, m.Key...), ':'), cost...)
		}
		return true
	})
	c.cost = append(dst, "}}"...)
	if c.open != nil {
		c.open.cost, c.cost = append(c.open.cost[:0], c.cost...), c.cost[:0]
	}
}

// isCost reports whether a value is an amount of money.
func isCost(v rawjson.Value) bool {
	cost, err := strconv.ParseFloat(string(v), 64)
	return v.IsNumber() && err == nil && cost >= 0
}

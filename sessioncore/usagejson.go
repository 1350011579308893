package sessioncore

import (
	"bytes"
	"math"
	"strconv"
)

// usageJSON writes the total and the models of some records as the members of an object.
func usageJSON(records []usageRecord, models []string, indent string) []byte {
	var total usageSum
	byModel := make([]usageSum, len(models))
	seen := make([]bool, len(models))
	for i := range records {
		r := &records[i]
		total.add(&r.usageSum)
		byModel[r.model].add(&r.usageSum)
		seen[r.model] = true
	}
	out := append([]byte(indent), `"total": `...)
	out = total.appendJSON(out, indent)
	out = append(append(append(out, ",\n"...), indent...), `"models": {`...)
	listed := false
	for i, name := range models {
		if !seen[i] {
			continue
		}
		if listed {
			out = append(out, ',')
		}
		listed = true
		out = append(append(append(out, '\n'), indent...), "  "+name+": "...)
		out = byModel[i].appendJSON(out, indent+"  ")
	}
	if listed {
		out = append(append(out, '\n'), indent...)
	}
	return append(out, '}')
}

func (u *usageSum) add(v *usageSum) {
	u.messages += v.messages
	for i := range u.n {
		u.n[i] += v.n[i]
	}
}

// appendJSON writes a sum as an object of several lines.
func (u *usageSum) appendJSON(dst []byte, indent string) []byte {
	member := func(key string, indent string) {
		dst = append(append(append(dst, '\n'), indent...), `  "`+key+`": `...)
	}
	dst = append(dst, '{')
	member("assistantMessages", indent)
	dst = strconv.AppendInt(dst, int64(u.messages), 10)
	for i, key := range [...]string{"input", "output", "cacheRead", "cacheWrite", "totalTokens", "premiumRequests"} {
		dst = append(dst, ',')
		member(key, indent)
		dst = appendNumber(dst, u.n[i])
	}
	dst = append(dst, ',')
	member("cost", indent)
	dst = append(dst, '{')
	for i, key := range costKeys {
		if i > 0 {
			dst = append(dst, ',')
		}
		member(key, indent+"  ")
		dst = appendNumber(dst, u.n[usageCost+i])
	}
	dst = append(append(append(dst, '\n'), indent...), "  }\n"...)
	return append(append(dst, indent...), '}')
}

// appendNumber writes a double as JSON.stringify does.
func appendNumber(dst []byte, f float64) []byte {
	switch a := math.Abs(f); {
	case math.IsInf(f, 0) || math.IsNaN(f):
		return append(dst, "null"...)
	case f == 0: // -0 too
		return append(dst, '0')
	case a >= 1e-6 && a < 1e21:
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	text := strconv.AppendFloat(nil, f, 'e', -1, 64)
	e := bytes.IndexByte(text, 'e') + len("e+")
	return append(append(dst, text[:e]...), bytes.TrimLeft(text[e:], "0")...)
}

package sent

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
)

// outputNotice returns what the client adds to the output of a command: how it was shortened, and where the rest is.
func outputNotice(meta rawjson.Value) (string, error) {
	var parts []string
	if truncation := meta.Member("truncation"); truncation.Truthy() {
		parts = append(parts, truncationNotice(truncation, meta.Member("source")))
	}
	if failed := meta.Member("artifactError"); failed.Truthy() {
		parts = append(parts, "Full output was not saved completely (artifact "+failed.AsKey()+" failed)")
	}
	limits := meta.Member("limits")
	for _, limit := range []struct{ key, of string }{{"matchLimit", "matches"}, {"resultLimit", "results"}, {"headLimit", "results"}} {
		if l := limits.Member(limit.key); l.Truthy() {
			parts = append(parts, fmt.Sprintf("%s %s limit reached. Use limit=%s for more",
				templated(l.Member("reached")), limit.of, templated(l.Member("suggestion"))))
		}
	}
	if c := limits.Member("columnTruncated"); c.Truthy() {
		unit := "chars"
		if u := c.Member("unit"); !u.Missing() {
			unit = u.AsKey()
		}
		notice := "Some lines truncated to " + templated(c.Member("maxColumn")) + " " + unit
		if id := c.Member("artifactId"); !id.Missing() {
			notice += ". " + artifactReference(id)
		}
		parts = append(parts, notice)
	}
	if len(elements(meta.Member("diagnostics").Member("messages"))) > 0 {
		return "", fmt.Errorf("%w: the diagnostics of a command", ErrUnsupported)
	}
	if len(parts) == 0 {
		return "", nil
	}
	return "\n\n[" + strings.Join(parts, ". ") + "]", nil
}

func artifactReference(id rawjson.Value) string {
	return "Read artifact://" + id.AsKey() + " for full output"
}

// truncationNotice returns which part of an output is shown.
func truncationNotice(t, source rawjson.Value) string {
	var more string
	if next := t.Member("nextOffset"); !next.Missing() {
		more = ". Use :" + next.AsKey() + " to continue"
	}
	if id := t.Member("artifactId"); !id.Missing() {
		reference := artifactReference(id)
		if source.Member("type").Is("report") {
			reference = "Read artifact://" + id.AsKey() + " for full report (" + templated(source.Member("value")) + ")"
		}
		if t.Member("partialLine").Truthy() && !t.Member("direction").Is("middle") {
			more = ""
		}
		more += ". " + reference
	} else if t.Member("partialLine").Truthy() && !t.Member("direction").Is("middle") {
		more = ""
	}
	if t.Member("direction").Is("middle") {
		return middleNotice(t) + more
	}
	total, shown := templated(t.Member("totalLines")), t.Member("shownRange")
	start, end := shown.Member("start"), shown.Member("end")
	if t.Member("partialLine").Truthy() {
		line := "1"
		if !start.Missing() {
			line = start.AsKey()
		}
		return fmt.Sprintf("Showing line %s (partial, %s of %s) of %s", line, sizeText(number(t.Member("outputBytes"))),
			sizeText(number(t.Member("totalBytes"))), total) + more
	}
	var notice string
	if shown.Truthy() && number(end) >= number(start) {
		notice = "Showing lines " + templated(start) + "-" + templated(end) + " of " + total
	} else {
		notice = "Showing " + templated(t.Member("outputLines")) + " of " + total + " lines"
	}
	if t.Member("truncatedBy").Is("bytes") {
		limit := t.Member("maxBytes")
		if limit.Missing() {
			limit = t.Member("outputBytes")
		}
		notice += " (" + sizeText(number(limit)) + " limit)"
	}
	return notice + more
}

// middleNotice is the notice of an output whose middle is left out.
func middleNotice(t rawjson.Value) string {
	total, head, tail := t.Member("totalLines"), t.Member("headRange"), t.Member("tailRange")
	left := func(key, all, shown string) float64 {
		if v := t.Member(key); !v.Missing() {
			return number(v)
		}
		return math.Max(0, number(t.Member(all))-number(t.Member(shown)))
	}
	bytes, lines := left("elidedBytes", "totalBytes", "outputBytes"), left("elidedLines", "totalLines", "outputLines")
	switch {
	case head.Truthy() && tail.Truthy():
		return fmt.Sprintf("Showing lines %s-%s and %s-%s of %s; %s middle line%s (%s) elided",
			templated(head.Member("start")), templated(head.Member("end")), templated(tail.Member("start")), templated(tail.Member("end")),
			templated(total), grouped(lines), plural(lines), sizeText(bytes))
	case bytes > 0:
		return fmt.Sprintf("Showing head and tail bytes of %s line%s; %s elided", grouped(number(total)), plural(number(total)), sizeText(bytes))
	}
	shown := math.Min(number(t.Member("outputLines")), number(total))
	return "Showing " + string(rawjson.AppendNumber(nil, shown)) + " of " + templated(total) + " lines; middle elided"
}

func number(v rawjson.Value) float64 {
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil || !v.IsNumber() {
		return math.NaN()
	}
	return f
}

func plural(n float64) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// sizeText returns a size in bytes for people to read.
func sizeText(bytes float64) string {
	for _, unit := range []struct {
		below float64
		name  string
	}{{1 << 20, "KB"}, {1 << 30, "MB"}, {math.Inf(1), "GB"}} {
		if bytes < 1024 {
			return string(rawjson.AppendNumber(nil, bytes)) + "B"
		}
		if bytes < unit.below {
			return strconv.FormatFloat(bytes/(unit.below/1024), 'f', 1, 64) + unit.name
		}
	}
	return strconv.FormatFloat(bytes/(1<<30), 'f', 1, 64) + "GB"
}

// grouped returns a number with commas between groups of three digits.
func grouped(n float64) string {
	digits := strconv.FormatFloat(n, 'f', -1, 64)
	whole, fraction, _ := strings.Cut(digits, ".")
	var out []byte
	for i := range len(whole) {
		if i > 0 && (len(whole)-i)%3 == 0 && whole[i-1] != '-' {
			out = append(out, ',')
		}
		out = append(out, whole[i])
	}
	if fraction != "" {
		return string(out) + "." + fraction
	}
	return string(out)
}

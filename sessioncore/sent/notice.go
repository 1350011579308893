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
			parts = append(parts, l.Member("reached").AsKey()+" "+limit.of+" limit reached. Use limit="+l.Member("suggestion").AsKey()+" for more")
		}
	}
	if c := limits.Member("columnTruncated"); c.Truthy() {
		parts = append(parts, "Some lines truncated to "+c.Member("maxColumn").AsKey()+" "+or(c.Member("unit"), "chars"))
		if id := c.Member("artifactId"); !id.Missing() {
			parts = append(parts, "Read artifact://"+id.AsKey()+" for full output")
		}
	}
	if len(elements(meta.Member("diagnostics").Member("messages"))) > 0 {
		return "", fmt.Errorf("%w: the diagnostics of a command", ErrUnsupported)
	}
	if len(parts) == 0 {
		return "", nil
	}
	return "\n\n[" + strings.Join(parts, ". ") + "]", nil
}

// or is JavaScript's ?? in a template.
func or(v rawjson.Value, other string) string {
	if v.Missing() {
		return other
	}
	return v.AsKey()
}

// truncationNotice returns which part of an output is shown, and where the rest is.
func truncationNotice(t, source rawjson.Value) string {
	shown, middle := "", t.Member("direction").Is("middle")
	partial := t.Member("partialLine").Truthy() && !middle
	switch {
	case middle:
		shown = middleNotice(t)
	case partial:
		shown = fmt.Sprintf("Showing line %s (partial, %s of %s) of %s", or(t.Member("shownRange").Member("start"), "1"),
			sizeText(number(t.Member("outputBytes"))), sizeText(number(t.Member("totalBytes"))), t.Member("totalLines").AsKey())
	default:
		shown = shownNotice(t)
	}
	if next := t.Member("nextOffset"); !next.Missing() && !partial {
		shown += ". Use :" + next.AsKey() + " to continue"
	}
	if id := t.Member("artifactId"); !id.Missing() {
		shown += ". Read artifact://" + id.AsKey() + " for full "
		if source.Member("type").Is("report") {
			return shown + "report (" + source.Member("value").AsKey() + ")"
		}
		shown += "output"
	}
	return shown
}

// shownNotice is the notice of an output whose beginning or end is shown.
func shownNotice(t rawjson.Value) string {
	shown, total := t.Member("shownRange"), t.Member("totalLines").AsKey()
	notice := "Showing " + t.Member("outputLines").AsKey() + " of " + total + " lines"
	if shown.Truthy() && number(shown.Member("end")) >= number(shown.Member("start")) {
		notice = "Showing lines " + rangeText(shown) + " of " + total
	}
	if t.Member("truncatedBy").Is("bytes") {
		limit := t.Member("maxBytes")
		if limit.Missing() {
			limit = t.Member("outputBytes")
		}
		notice += " (" + sizeText(number(limit)) + " limit)"
	}
	return notice
}

func rangeText(lines rawjson.Value) string {
	return lines.Member("start").AsKey() + "-" + lines.Member("end").AsKey()
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
		return fmt.Sprintf("Showing lines %s and %s of %s; %s middle line%s (%s) elided",
			rangeText(head), rangeText(tail), total.AsKey(), grouped(lines), plural(lines), sizeText(bytes))
	case bytes > 0:
		return fmt.Sprintf("Showing head and tail bytes of %s line%s; %s elided", grouped(number(total)), plural(number(total)), sizeText(bytes))
	}
	shown := math.Min(number(t.Member("outputLines")), number(total))
	return "Showing " + string(rawjson.AppendNumber(nil, shown)) + " of " + total.AsKey() + " lines; middle elided"
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
	if bytes < 1024 {
		return string(rawjson.AppendNumber(nil, bytes)) + "B"
	}
	unit := "KB"
	for bytes /= 1024; !(bytes < 1024) && unit != "GB"; bytes /= 1024 { // NaN too
		unit = map[string]string{"KB": "MB", "MB": "GB"}[unit]
	}
	return strconv.FormatFloat(bytes, 'f', 1, 64) + unit
}

// grouped returns a number with commas between groups of three digits.
func grouped(n float64) string {
	whole, fraction, found := strings.Cut(strconv.FormatFloat(n, 'f', -1, 64), ".")
	for i := len(whole) - 3; i > 0 && whole[i-1] != '-'; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if found {
		whole += "." + fraction
	}
	return whole
}

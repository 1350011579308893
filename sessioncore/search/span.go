package search

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Span is a day, a week, a month or a moment that a text names.
type Span struct {
	Begin, End time.Time // End is the first moment after it
	// Relative says that the text names another span on another day.
	Relative bool
}

// moments are the forms of a moment, without a zone in local time, and how long it lasts.
var moments = []struct {
	form string
	long time.Duration
}{{"2006-01-02T15:04", time.Minute}, {"2006-01-02T15:04:05", time.Second}, {time.RFC3339, time.Second}}

// ParseSpan returns the span that a text names at the time now, in the zone of that: a date, a
// month (2026-01), a moment, today, yesterday, a weekday (the last one, today included), or a day
// or a week that began so many days (7d) or weeks (2w) ago.
func ParseSpan(text string, now time.Time) (Span, error) {
	zone := now.Location()
	for _, m := range moments {
		at, err := time.ParseInLocation(m.form, text, zone)
		if err == nil {
			before := at.Add(-time.Hour)
			if before.Format(m.form) == at.Format(m.form) {
				at = before // of two moments the first, as of two midnights
			}
			return Span{Begin: at, End: at.Add(m.long)}, nil
		}
	}
	day, err := time.Parse(time.DateOnly, text)
	if err == nil {
		return days(day, 0, 1, zone), nil
	}
	month, err := time.Parse("2006-01", text)
	if err == nil {
		return days(month, 0, month.AddDate(0, 1, -1).Day(), zone), nil
	}
	s, ok := relativeSpan(strings.ToLower(text), now)
	if !ok {
		return Span{}, fmt.Errorf("a date such as 2026-01-31, 2026-01-31T15:04, 2026-01, "+
			"today, yesterday, monday, 7d or 2w, not %q", text)
	}
	s.Relative = true
	return s, nil
}

// relativeSpan returns the span that a text in lower case names at the time now, in the zone of that; false if it
// names none.
func relativeSpan(text string, now time.Time) (Span, bool) {
	switch text {
	case "today":
		return days(now, 0, 1, now.Location()), true
	case "yesterday":
		return days(now, -1, 1, now.Location()), true
	}
	for ago := range 7 {
		day := now.AddDate(0, 0, -ago)
		name := strings.ToLower(day.Weekday().String())
		if text == name || text == name[:3] {
			return days(now, -ago, 1, now.Location()), true
		}
	}
	long := 1 // in days
	number, isSpan := strings.CutSuffix(text, "d")
	if !isSpan {
		long = 7
		number, isSpan = strings.CutSuffix(text, "w")
	}
	n, err := strconv.ParseUint(number, 10, 16)
	if err != nil || !isSpan {
		return Span{}, false
	}
	return days(now, -int(n)*long, long, now.Location()), true
}

// days returns the span of count days in a zone that begins some days after the day of at, or before it if after
// is negative.
func days(at time.Time, after, count int, zone *time.Location) Span {
	year, month, day := at.Date()
	first := day + after
	return Span{
		Begin: midnight(year, month, first, zone),
		End:   midnight(year, month, first+count, zone),
	}
}

// midnight returns the beginning of a day, which need not be at 0:00, and of two midnights is the
// first.
func midnight(year int, month time.Month, day int, zone *time.Location) time.Time {
	t := time.Date(year, month, day, 0, 0, 0, 0, zone)
	day = time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Day() // as the one given may be beyond the month
	earlier := t.Add(-time.Hour)
	switch {
	case t.Day() != day: // clocks went forward at 0:00, and t is still the day before
		return t.Add(time.Hour)
	case earlier.Day() == day: // clocks went back over 0:00
		return earlier
	}
	return t
}

package rawjson

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// TimeForm is the form in which a file writes times. Times that are added to the file have the same form, so that
// readers of only one form can still read it.
type TimeForm uint8

// The forms.
const (
	TimeZulu     TimeForm = iota // "2026-02-16T10:20:30.000Z"
	TimeOffset                   // "2026-02-16T10:20:30.000+00:00", as Python writes UTC
	timeLocal                    // "2026-02-16T10:20:30.000": local time, as Python writes a time without a zone
	timeSeconds                  // 1771237230
	timeFraction                 // 1771237230.123
	timeMillis                   // 1771237230123
)

// TimestampLayout is the time.Format layout of times written by omp: ISO 8601, UTC, milliseconds.
const TimestampLayout = "2006-01-02T15:04:05.000Z"

// Append appends t as JSON in the form f, truncated to milliseconds or, in a form without fractions, to seconds.
func (f TimeForm) Append(dst []byte, t time.Time) []byte {
	switch f {
	case TimeOffset:
		return AppendQuoted(dst, t.UTC().Format("2006-01-02T15:04:05.000-07:00"))
	case timeLocal:
		return AppendQuoted(dst, t.Local().Format("2006-01-02T15:04:05.000"))
	case timeSeconds:
		return strconv.AppendInt(dst, t.Unix(), 10)
	case timeFraction:
		return strconv.AppendFloat(dst, float64(t.UnixMilli())/1000, 'f', 3, 64)
	case timeMillis:
		return strconv.AppendInt(dst, t.UnixMilli(), 10)
	}
	return AppendQuoted(dst, t.UTC().Format(TimestampLayout))
}

// ReadTimestamp parses a timestamp as the client does. ms is in milliseconds since the epoch.
func ReadTimestamp(v Value) (ms int64, form TimeForm, ok bool) {
	ms, ok = timeOf(v)
	return ms, TimeZulu, ok
}

// maxSeconds is the limit below which a number means seconds since the epoch, as returned by Python's time.time().
// As seconds it is in the year 5138; as milliseconds it is in 1973, before there were sessions.
const maxSeconds = 1e11

// ReadOperatorTimestamp parses a timestamp of the operator dialect: a number of seconds or milliseconds since the
// epoch, possibly with a fraction, or a string.
func ReadOperatorTimestamp(v Value) (ms int64, form TimeForm, ok bool) {
	switch {
	case v.IsString():
		ms, ok = timeOf(v)
		return ms, textForm(string(v[1 : len(v)-1])), ok
	case !v.IsNumber():
		return 0, 0, false
	}
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil {
		return 0, 0, false
	}
	form = timeMillis
	if math.Abs(f) < maxSeconds {
		f *= 1000
		form = timeSeconds
		if strings.ContainsAny(string(v), ".eE") {
			form = timeFraction
		}
	}
	if f = math.Round(f); math.Abs(f) > maxTime {
		return 0, 0, false
	}
	return int64(f), form, true
}

// textForm returns the form of a time in a string, which depends on what follows the time of day.
func textForm(text string) TimeForm {
	switch at := strings.IndexByte(text, 'T'); {
	case strings.HasSuffix(text, "Z"):
		return TimeZulu
	case at >= 0 && !strings.ContainsAny(text[at:], "+-"):
		return timeLocal
	}
	return TimeOffset
}

package sessioncore

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// timeForm is how a file writes times. What is added to it writes them likewise: who reads only one of
// the forms goes on reading the file.
type timeForm uint8

// The forms.
const (
	timeZulu     timeForm = iota // "2026-02-16T10:20:30.000Z"
	timeOffset                   // "2026-02-16T10:20:30.000+00:00", as Python writes UTC
	timeLocal                    // "2026-02-16T10:20:30.000": local time, as Python writes a time without a zone
	timeSeconds                  // 1771237230
	timeFraction                 // 1771237230.123
	timeMillis                   // 1771237230123
)

// timestampLayout is how omp writes a time: ISO 8601, UTC, milliseconds.
const timestampLayout = "2006-01-02T15:04:05.000Z"

// append appends a time as JSON, to the millisecond.
func (f timeForm) append(dst []byte, t time.Time) []byte {
	switch f {
	case timeOffset:
		return appendQuoted(dst, t.UTC().Format("2006-01-02T15:04:05.000-07:00"))
	case timeLocal:
		return appendQuoted(dst, t.Local().Format("2006-01-02T15:04:05.000"))
	case timeSeconds:
		return strconv.AppendInt(dst, t.Unix(), 10)
	case timeFraction:
		return strconv.AppendFloat(dst, float64(t.UnixMilli())/1000, 'f', 3, 64)
	case timeMillis:
		return strconv.AppendInt(dst, t.UnixMilli(), 10)
	}
	return appendQuoted(dst, t.UTC().Format(timestampLayout))
}

// ompTime reads a timestamp as the client does.
func ompTime(v value) (ms int64, form timeForm, ok bool) {
	ms, ok = timeOf(v)
	return ms, timeZulu, ok
}

// maxSeconds is below what a number means seconds since the epoch, as Python's time.time() has them: of
// the year 5138. As milliseconds it is of 1973, before there was anything to record.
const maxSeconds = 1e11

// operatorTime reads a timestamp of the operator dialect: seconds or milliseconds since the epoch,
// fractions counted, or a text.
func operatorTime(v value) (ms int64, form timeForm, ok bool) {
	switch {
	case v.isString():
		ms, ok = timeOf(v)
		return ms, textForm(string(v[1 : len(v)-1])), ok
	case !v.isNumber():
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

// textForm tells the forms of texts by what stands behind the time of day.
func textForm(text string) timeForm {
	switch at := strings.IndexByte(text, 'T'); {
	case strings.HasSuffix(text, "Z"):
		return timeZulu
	case at >= 0 && !strings.ContainsAny(text[at:], "+-"):
		return timeLocal
	}
	return timeOffset
}

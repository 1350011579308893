package rawjson

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// maxTime is the maximum distance of a JavaScript Date from the epoch, in milliseconds.
const maxTime = 8.64e15

// timeOf parses an entry's timestamp, in milliseconds since the epoch. It is a number of milliseconds, an RFC 3339
// time with or without fraction and zone, or a date alone. A time without a zone is local, a date alone is UTC, as
// the client reads them. ok is false for anything else. Source: docs/format.md, Loading.
func timeOf(v Value) (ms int64, ok bool) {
	switch {
	case v.IsString():
		// As clients write times. This does not allocate, since it is done for each entry of a session.
		var t time.Time
		if b := v[1 : len(v)-1]; len(b) == len(TimestampLayout) && b[len(layoutLocal)] == '.' && t.UnmarshalText(b) == nil {
			return t.UnixMilli(), true
		}
		text, _ := v.Bytes()
		return parseTime(text)
	case v.IsNumber():
		f, err := strconv.ParseFloat(string(v), 64)
		if err != nil || math.Abs(f) > maxTime {
			return 0, false
		}
		return int64(f), true
	}
	return 0, false
}

// Layouts of the times that parseTime parses. Fractions of a second need no layouts of their own.
const (
	layoutZone  = "2006-01-02T15:04:05Z07:00"
	layoutLocal = "2006-01-02T15:04:05"
	layoutDate  = "2006-01-02"
)

// maxTimeText is longer than any time that a program writes: RFC 3339 with nanoseconds has 35 bytes.
const maxTimeText = 64

func parseTime(text []byte) (ms int64, ok bool) {
	if len(text) > maxTimeText || len(text) < len(layoutDate) {
		return 0, false
	}
	s := string(text)
	if len(s) == len(layoutDate) {
		t, err := time.Parse(layoutDate, s)
		if err != nil {
			return 0, false
		}
		return t.UnixMilli(), true
	}
	switch s[len(layoutDate)] {
	case 'T', 't', ' ': // RFC 3339 allows all three
	default:
		return 0, false
	}
	if strings.IndexByte(s, ',') >= 0 { // time.Parse would accept a fraction after a comma
		return 0, false
	}
	s = strings.ToUpper(s[:len(layoutDate)] + "T" + s[len(layoutDate)+1:])
	t, err := time.Parse(layoutZone, s)
	if err != nil {
		t, err = time.ParseInLocation(layoutLocal, s, time.Local)
	}
	if err != nil {
		return 0, false
	}
	return t.UnixMilli(), true
}

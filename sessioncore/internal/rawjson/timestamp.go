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
		if ms, ok := exactTime(v[1 : len(v)-1]); ok {
			return ms, true
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

// exactForm is the form of times that clients write (Date's toISOString). 0 stands for any digit.
const exactForm = "0000-00-00T00:00:00.000Z"

// exactTime parses a time in exactForm without allocating, since it is called for each entry of a session.
func exactTime(b []byte) (ms int64, ok bool) {
	if len(b) != len(exactForm) {
		return 0, false
	}
	var part [7]int // year, month, day, hour, minute, second, ms
	n := 0
	for i, c := range b {
		switch digit := c - '0'; {
		case exactForm[i] != '0':
			if c != exactForm[i] {
				return 0, false
			}
			n++
		case digit > 9:
			return 0, false
		default:
			part[n] = part[n]*10 + int(digit)
		}
	}
	month, day, hour, minute, second := time.Month(part[1]), part[2], part[3], part[4], part[5]
	t := time.Date(part[0], month, day, hour, minute, second, part[6]*int(time.Millisecond), time.UTC)
	// time.Date normalizes values that are out of range.
	if t.Month() != month || t.Day() != day || t.Hour() != hour || t.Minute() != minute || t.Second() != second {
		return 0, false
	}
	return t.UnixMilli(), true
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

package sessioncore

import (
	"math"
	"strconv"
	"time"
)

// The client sorts by new Date(timestamp).getTime(), so times are read as its Date reads them, with all
// that this accepts. Here: JSON values, the form that clients write, and from a date to milliseconds.
// datetoken.go, dateiso.go and datelegacy.go read texts.

const (
	// maxTime is the farthest a JavaScript Date reaches from the epoch, in ms.
	maxTime = 8.64e15
	// maxYear is beyond every year that can come into maxTime's reach by an offset (68 years at most),
	// and near enough for ms in an int64.
	maxYear = 300_000
	// maxJoined bounds the text made of an array, where a few bytes of JSON can stand for twenty. Whoever
	// means a time needs a hundred.
	maxJoined = 1 << 20
	// maxZoneChanges is more than any time zone changes its offset within two days.
	maxZoneChanges = 8
)

// timeOf reads an entry's timestamp as the client does (new Date(timestamp).getTime()): ms since the
// epoch. ok is false where that is no time.
func timeOf(v value) (ms int64, ok bool) {
	switch {
	case v.isString():
		if ms, ok := exactTime(v[1 : len(v)-1]); ok {
			return ms, true
		}
		text, _ := v.bytes()
		return parseTime(text)
	case v.isNumber():
		f, err := strconv.ParseFloat(string(v), 64)
		if err != nil || math.Abs(f) > maxTime {
			return 0, false
		}
		return int64(f), true
	case v.isArray():
		text, ok := joined(v)
		if !ok {
			return 0, false
		}
		return parseTime(text)
	case len(v) == 0 || v.isObject():
		return 0, false
	}
	if v[0] == 't' { // true counts as 1, null and false as 0
		ms = 1
	}
	return ms, true
}

// joined is what JavaScript makes of an array where it needs a string: the elements with commas
// between them. An inner array becomes a string the same way, so all that its brackets do is vanish,
// and no depth of nesting needs a recursion.
func joined(v value) (text []byte, ok bool) {
	var s scanner
	for i := 0; i < len(v); {
		switch v[i] {
		case '[', ']', ' ', '\t', '\n', '\r':
			i++
		case ',':
			text = append(text, ',')
			i++
		default:
			end, st := s.skipValue(v, i)
			if st != scanOK {
				return nil, false
			}
			text = appendJoined(text, v[i:end])
			i = end
		}
		if len(text) > maxJoined {
			return nil, false
		}
	}
	return text, true
}

// appendJoined appends what an element that is no array adds to a joined text.
func appendJoined(dst []byte, v value) []byte {
	switch {
	case v.isString():
		return decodeString(dst, v[1:len(v)-1])
	case v.isNumber():
		f, _ := strconv.ParseFloat(string(v), 64)
		switch {
		case f == 0: // -0 too
			return append(dst, '0')
		case math.IsInf(f, 1):
			return append(dst, "Infinity"...)
		case math.IsInf(f, -1):
			return append(dst, "-Infinity"...)
		case math.Abs(f) >= 1e-6 && math.Abs(f) < 1e21:
			return strconv.AppendFloat(dst, f, 'f', -1, 64)
		}
		return strconv.AppendFloat(dst, f, 'e', -1, 64)
	case v.isObject():
		return append(dst, "[object Object]"...)
	case v.missing():
		return dst
	}
	return append(dst, v...)
}

// exactForm is what clients write (Date's toISOString), 0 standing for any digit.
const exactForm = "0000-00-00T00:00:00.000Z"

// exactTime reads a time in exactForm. It is there for speed alone: parseTime would give the same. A
// time that it does not know is left to that.
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
	month, day, hour := part[1], part[2], part[3]
	if month < 1 || month > 12 || !isDay(day) || hour > 23 || part[4] > 59 || part[5] > 59 {
		return 0, false
	}
	clock := ((hour*60+part[4])*60+part[5])*1000 + part[6]
	return calendarTime(part[0], month, day) + int64(clock), true
}

// isDay: in Date every month has up to 31 days, those too many running on into the next month.
func isDay(n int) bool { return n >= 1 && n <= 31 }

// calendarTime returns the ms from the epoch to the beginning of a day, without regard to zones.
func calendarTime(year, month, day int) int64 {
	return time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC).UnixMilli()
}

// parseTime reads any text that Date reads, in one pass.
func parseTime(text []byte) (ms int64, ok bool) {
	r := dateReader{dateScanner: dateScanner{text: text}, day: [3]int{1, 1, 1}}
	r.next = r.token()
	rest, ok := r.iso()
	if !ok || !r.legacy(rest) || r.days == 0 {
		return 0, false
	}
	year, month, day := r.calendar()
	if year < -maxYear || year > maxYear || month < 1 || month > 12 || !isDay(day) {
		return 0, false
	}
	clock, ok := r.clock()
	if !ok {
		return 0, false
	}
	ms = calendarTime(year, month, day) + clock
	if r.zone.sign == 0 {
		ms -= localOffset(ms)
	} else {
		offset, ok := r.zone.offset()
		if !ok {
			return 0, false
		}
		ms -= offset
	}
	if ms < -maxTime || ms > maxTime {
		return 0, false
	}
	return ms, true
}

// localOffset returns what local time is ahead of UTC, in ms, when clocks show local (as ms since the
// epoch). As ECMAScript wants it: of a time that comes twice the first, and one that is skipped counts
// by the offset before. time.Date promises neither.
func localOffset(local int64) int64 {
	t := time.UnixMilli(local).In(time.Local).Add(24 * time.Hour) // behind every change in question
	for range maxZoneChanges {
		start, _ := t.ZoneBounds()
		if start.IsZero() {
			break
		}
		before := start.Add(-1)
		if local >= start.UnixMilli()+max(offsetAt(before), offsetAt(t)) {
			break
		}
		t = before
	}
	return offsetAt(t)
}

func offsetAt(t time.Time) int64 {
	_, seconds := t.Zone()
	return int64(seconds) * 1000
}

package sessioncore

import (
	"math"
	"strconv"
	"time"
)

// The client sorts by new Date(timestamp).getTime(), so times are read as its Date reads them, with all
// that this accepts. Here: JSON values, the form that clients write, ISO 8601, and from a calendar date
// to milliseconds. What is no ISO 8601 goes on in datelegacy.go.

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
		case math.IsInf(f, 0): // its sign tells: behind a number it makes the text unreadable
			return append(strconv.AppendFloat(dst, math.Copysign(0, f), 'f', 0, 64), "Infinity"...)
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
	return ms, ms <= maxTime && ms >= -maxTime
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

// iso reads the text as ECMAScript's date time string format, from a year alone to an offset. ok is
// false where the text can be no time at all. Where it is another form, rest is the first token that
// the old rules go on with: they keep the numbers read up to there.
func (r *dateReader) iso() (rest dateToken, ok bool) {
	end := dateToken{kind: tokenEnd}
	if r.next.isSign() {
		sign := r.take()
		year, ok := r.fixed(6, 0, 999_999)
		if !ok || sign.is('-') && year == 0 {
			return sign, true
		}
		if sign.is('-') {
			year = -year
		}
		r.addDay(year)
	} else if year, ok := r.fixed(4, 0, 9999); ok {
		r.addDay(year)
	} else {
		return r.take(), true
	}
	for _, most := range []int{12, 31} { // month, day
		if !r.skip('-') {
			break
		}
		n, ok := r.fixed(2, 1, most)
		if !ok {
			return r.take(), true
		}
		r.addDay(n)
	}
	switch r.next.kind {
	case tokenEnd: // a date alone is UTC
		r.zone = dateZone{sign: 1}
	case tokenT:
		r.take()
		if !r.isoClock() || !r.isoZone() || r.next.kind != tokenEnd {
			return end, false
		}
	default:
		return r.take(), true
	}
	r.isISO = true
	return end, true
}

// isoClock reads hh:mm, hh:mm:ss or hh:mm:ss.fraction. Hour 24 is the midnight that ends the day.
func (r *dateReader) isoClock() bool {
	hour, ok := r.fixed(2, 0, 24)
	if !ok || !r.skip(':') {
		return false
	}
	most := 59
	if hour == 24 {
		most = 0
	}
	minute, ok := r.fixed(2, 0, most)
	if !ok {
		return false
	}
	r.addTime(hour)
	r.addTime(minute)
	if !r.skip(':') {
		return true
	}
	second, ok := r.fixed(2, 0, most)
	if !ok {
		return false
	}
	r.addTime(second)
	if !r.skip('.') {
		return true
	}
	if r.next.kind != tokenNumber || hour == 24 && r.next.value > 0 {
		return false
	}
	return r.addTime(r.take().milliseconds())
}

// isoZone reads Z, an offset hh:mm or hhmm, or nothing, which is local time.
func (r *dateReader) isoZone() bool {
	switch {
	case r.next.isZ():
		r.take()
		r.zone = dateZone{sign: 1}
		return true
	case !r.next.isSign():
		return true
	}
	sign := r.take()
	if together, ok := r.fixed(4, 0, 9999); ok {
		r.zone = sign.zone(together/100, together%100)
		return r.zone.hour <= 23 && r.zone.minute <= 59
	}
	hour, ok := r.fixed(2, 0, 23)
	if !ok || !r.skip(':') {
		return false
	}
	minute, ok := r.fixed(2, 0, 59)
	r.zone = sign.zone(hour, minute)
	return ok
}

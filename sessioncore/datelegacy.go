package sessioncore

// The rules by which Date reads what is no ISO 8601: "Mon, 05 Jan 2026 09:00:00 GMT", "1/5/2026 9:00
// PM" and much that nobody means as a time. They take one token after the other, with one more in
// view.

// dateZone is an offset from UTC.
type dateZone struct {
	sign         int // 1 or -1; 0: there is no offset
	hour, minute int
	waits        bool // for the minutes, behind ±h:
}

// offset returns the offset in ms. The client reckons it in 32 bits, and so hours beyond reason can
// still make an offset.
func (z dateZone) offset() (ms int64, ok bool) {
	seconds := int32(uint32(z.hour)*3600 + uint32(z.minute)*60)
	return int64(z.sign) * int64(seconds) * 1000, seconds >= 0
}

// isUTC: what may yet be followed by an offset, as in GMT+0100.
func (z dateZone) isUTC() bool { return z.sign != 0 && z.hour == 0 && z.minute == 0 && !z.waits }

// dateReader gathers the parts of a time.
type dateReader struct {
	dateScanner
	next dateToken // the one in view

	day   [3]int // what seems to be year, month and day, in the text's order; 1 where missing
	days  int    // how many of them there are
	month int    // given by name, else 0
	isISO bool

	time    [4]int // hour, minute, second, ms
	times   int
	half    int // hours to add
	hasHalf bool
	zone    dateZone
}

func (r *dateReader) take() dateToken {
	t := r.next
	r.next = r.token()
	return t
}

// skip takes the token in view if it is that symbol.
func (r *dateReader) skip(symbol int) bool {
	if !r.next.is(symbol) {
		return false
	}
	r.take()
	return true
}

// fixed takes the token in view if it is a number of that many digits and within bounds.
func (r *dateReader) fixed(length, least, most int) (n int, ok bool) {
	t := r.next
	if t.kind != tokenNumber || t.length != length || t.value < least || t.value > most {
		return 0, false
	}
	r.take()
	return t.value, true
}

func (r *dateReader) addDay(n int) bool {
	if r.days == len(r.day) {
		return false
	}
	r.day[r.days] = n
	r.days++
	return true
}

func (r *dateReader) addTime(n int) bool {
	if r.times == len(r.time) {
		return false
	}
	r.time[r.times] = n
	r.times++
	return true
}

// lastTime adds the number with which the time of day ends.
func (r *dateReader) lastTime(n int) {
	if r.addTime(n) {
		r.times = len(r.time)
	}
}

// timeFits reports whether n can go on a time of day that has begun.
func (r *dateReader) timeFits(n int) bool {
	return (r.times == 1 || r.times == 2) && n <= 59 || r.times == 3 && n <= 999
}

// legacy reads on from token t by the old rules; false where the text can be no time.
func (r *dateReader) legacy(t dateToken) bool {
	seen := r.days > 0 // a number, from which on words and symbols need a meaning
	for ; t.kind != tokenEnd; t = r.take() {
		ok := true
		switch {
		case t.kind == tokenNumber:
			seen = true
			ok = r.legacyNumber(t.value)
		case t.kind >= tokenWord:
			ok = r.legacyWord(t, seen)
		case t.isSign() && (r.times > 0 || r.zone.isUTC()):
			seen = true
			ok = r.legacyOffset(t)
		case t.isSign() || t.is(')'):
			ok = !seen
		}
		if !ok {
			return false
		}
	}
	return true
}

// legacyNumber finds by its neighbours what a number is: a part of the time of day, the minutes of an
// offset, or else one of the date.
func (r *dateReader) legacyNumber(n int) bool {
	if r.skip(':') {
		if r.skip(':') { // no minutes between
			return r.times == 0 && r.addTime(n) && r.addTime(0)
		}
		if !r.addTime(n) {
			return false
		}
		r.skip('.')
		return true
	}
	if r.skip('.') && r.timeFits(n) {
		r.addTime(n)
		if r.next.kind != tokenNumber {
			return false
		}
		r.lastTime(r.take().milliseconds())
		return true
	}
	switch {
	case r.zone.waits && n <= 59:
		r.zone.minute, r.zone.waits = n, false
	case r.timeFits(n):
		r.lastTime(n)
		return r.next.kind == tokenEnd || r.next.kind == tokenSpace || r.next.isZ() || r.next.isSign()
	default:
		if !r.addDay(n) {
			return false
		}
		r.skip('-')
	}
	return true
}

// legacyWord takes a word; seen tells that there was a number before.
func (r *dateReader) legacyWord(t dateToken, seen bool) bool {
	switch {
	case t.kind == tokenHalf && r.times > 0:
		r.half, r.hasHalf = t.value, true
	case t.kind == tokenMonth:
		r.month = t.value
		r.skip('-')
	case t.kind == tokenZone && seen:
		r.zone = dateZone{sign: 1, hour: t.value}
		if t.value < 0 {
			r.zone = dateZone{sign: -1, hour: -t.value}
		}
	default:
		return !seen && r.next.kind != tokenNumber
	}
	return true
}

// legacyOffset reads the number behind a sign: h, hh, hmm, hhmm, or the hours before a colon.
func (r *dateReader) legacyOffset(sign dateToken) bool {
	var t dateToken
	if r.next.kind == tokenNumber {
		t = r.take()
	}
	switch {
	case r.next.is(':'):
		r.zone = sign.zone(t.value, 0)
		r.zone.waits = true
	case t.length == 1 || t.length == 2:
		r.zone = sign.zone(t.value, 0)
	case t.length == 3 || t.length == 4:
		r.zone = sign.zone(t.value/100, t.value%100)
	default:
		return false
	}
	return true
}

// calendar tells year, month and day apart.
func (r *dateReader) calendar() (year, month, day int) {
	d := r.day
	switch {
	case r.month > 0 && isDay(d[0]):
		year, month, day = d[1], r.month, d[0]
	case r.month > 0:
		year, month, day = d[0], r.month, d[1]
	case r.isISO || !isDay(d[0]):
		year, month, day = d[0], d[1], d[2]
	default:
		year, month, day = d[2], d[0], d[1]
	}
	switch {
	case r.isISO:
	case year >= 0 && year <= 49:
		year += 2000
	case year >= 50 && year <= 99:
		year += 1900
	}
	return year, month, day
}

// clock returns the time of day in ms.
func (r *dateReader) clock() (ms int64, ok bool) {
	hour, minute, second, milli := r.time[0], r.time[1], r.time[2], r.time[3]
	if r.hasHalf {
		if hour > 12 {
			return 0, false
		}
		hour = hour%12 + r.half
	}
	endOfDay := hour == 24 && minute == 0 && second == 0 && milli == 0
	if !endOfDay && (hour > 23 || minute > 59 || second > 59 || milli > 999) {
		return 0, false
	}
	return int64(((hour*60+minute)*60+second)*1000 + milli), true
}

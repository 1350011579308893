package sessioncore

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
	for _, most := range [2]int{12, 31} { // month, day
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

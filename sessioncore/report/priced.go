package report

// This file gives usages a cost that no client recorded: that of the whole session, where the client recorded it, and else
// that of list prices.

// priced returns the records of a session with their costs.
func (p Prices) priced(records []usageRecord) []usageRecord {
	known := map[string]*price{} // nil for a model without a price
	var priced []usageRecord
	for i := range records {
		r := &records[i]
		if r.Unpriced == 0 {
			continue
		}
		of, ok := known[r.model]
		if !ok {
			if found, ok := p.find(r.model); ok {
				of = &found
			}
			known[r.model] = of
		}
		if of == nil || r.fast && of.fast == 0 {
			continue
		}
		if priced == nil {
			priced = append(priced, records...)
		}
		priced[i].list(of)
	}
	if priced == nil {
		return records
	}
	return priced
}

// list gives a usage the cost of list prices.
func (u *usage) list(p *price) {
	at, times := p.of(&u.Sum), amount(1)
	if u.fast {
		times = p.fast
	}
	c := usageCost{
		known: true, Input: times * u.Input * at.input, Output: times * u.Output * at.output, CacheRead: times * u.CacheRead * at.cacheRead,
		CacheWrite: times * ((u.CacheWrite-u.hour)*at.cacheWrite + u.hour*at.hour),
	}
	c.Total = c.Input + c.Output + c.CacheRead + c.CacheWrite
	u.Cost, u.Listed, u.Unpriced = c, c.Total, 0
}

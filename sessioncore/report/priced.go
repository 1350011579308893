package report

import (
	"hash/maphash"
	"maps"
	"slices"
)

// This file gives usages a cost that no client recorded beside them: their part of the session's
// recorded cost, else the cost by list prices.

// priced returns the records of a session with their costs. records stay as they are, and are returned if all
// have one. A usage of a model without a price, or without one for fast mode, stays without a cost.
func (p Prices) priced(records []usageRecord) []usageRecord {
	lacksCost := func(r usageRecord) bool {
		return r.Unpriced > 0 || r.session != nil
	}
	if !slices.ContainsFunc(records, lacksCost) {
		return records
	}
	priced := shareSessionCosts(slices.Clone(records))
	known := map[string]*price{} // nil for a model without a price
	for i := range priced {
		r := &priced[i]
		if r.Unpriced == 0 {
			continue
		}
		modelPrice, isKnown := known[r.model]
		if !isKnown {
			found, hasPrice := p.find(r.model)
			if hasPrice {
				modelPrice = &found
			}
			known[r.model] = modelPrice
		}
		if modelPrice == nil {
			continue
		}
		times := amount(1)
		if r.fast {
			times = modelPrice.fast
		}
		if times == 0 {
			continue // nobody knows how much fast mode costs
		}
		r.charge(modelPrice.of(&r.Sum), times)
		r.Listed = r.Cost.Total
	}
	return priced
}

// charge gives a usage the cost that its tokens have by some rates, multiplied by times. It replaces a cost that
// the usage had.
func (u *usage) charge(at rates, times amount) {
	dollars := func(cost amount) Decimal {
		return decimalOf(float64(times * cost))
	}
	minutesWrite := u.CacheWrite - u.hour // not kept for an hour
	cost := usageCost{
		known:      true,
		Input:      dollars(u.Input * at.input),
		Output:     dollars(u.Output * at.output),
		CacheRead:  dollars(u.CacheRead * at.cacheRead),
		CacheWrite: dollars(minutesWrite*at.cacheWrite + u.hour*at.hour),
	}
	for _, part := range []Decimal{cost.Input, cost.Output, cost.CacheRead, cost.CacheWrite} {
		cost.Total = cost.Total.Add(part)
	}
	u.Cost = cost
	u.Unpriced = 0
}

// weights are the prices of tokens relative to the price of the input: nearly the same for all models
// of a provider.
var weights = rates{input: 1, output: 5, cacheRead: 0.1, cacheWrite: 1.25, hour: 2}

// weight returns the tokens of a usage by their cost: as many tokens of the input cost the same.
func (u *usage) weight() amount {
	charged := *u
	charged.charge(weights, 1)
	if charged.Cost.Total.isPositive() {
		return amount(charged.Cost.Total.Float())
	}
	return max(0, u.TotalTokens)
}

// shareSessionCosts returns records, in file order, with the costs that a client recorded of the whole
// session shared out. Each such cost includes the one before it: the difference of a model is shared
// among its usages between the two, by their tokens. The difference of a model without a usage there
// becomes a record of the entry that says the cost. It changes session of records.
func shareSessionCosts(records []usageRecord) []usageRecord {
	shared := make([]usageRecord, 0, len(records))
	var before sessionCost
	begin := 0
	for i := range records {
		shared = append(shared, records[i])
		says := records[i].session
		if i+1 < len(records) && records[i+1].entry == records[i].entry { // with the calls for the same answer
			if says != nil {
				records[i+1].session = says
				shared[len(shared)-1].session = nil
			}
			continue
		}
		if says == nil {
			continue
		}
		if says.total.minus(before.total).isNegative() { // the client began anew
			before = sessionCost{}
		}
		for _, model := range slices.Sorted(maps.Keys(says.models)) {
			cost := says.models[model].minus(before.models[model])
			if cost.isNegative() {
				cost = Decimal{}
			}
			if !share(shared[begin:], model, cost) && cost.isPositive() {
				shared = append(shared, records[i].ofAnother(model, cost))
			}
		}
		before = *says
		begin = len(shared)
	}
	return shared
}

// ofAnother returns a record of the same entry with the cost of a model that has no usage.
func (r *usageRecord) ofAnother(model string, cost Decimal) usageRecord {
	other := usageRecord{
		entry: r.entry,
		time:  r.time,
		usage: usage{model: model},
	}
	other.Cost = usageCost{Total: cost, known: true}
	if r.copy != 0 {
		other.copy = r.copy ^ maphash.String(seed, model)
	}
	return other
}

// share shares a cost among the usages of a model that have none. It reports whether there are any.
// The parts are differences of the cost's growth over the usages, and so have the cost as their sum.
func share(records []usageRecord, model string, cost Decimal) bool {
	var with []*usageRecord
	all := amount(0)
	for i := range records {
		if r := &records[i]; r.model == model && r.Unpriced > 0 {
			with = append(with, r)
			all += r.weight()
		}
	}
	if all <= 0 {
		return false
	}
	dollars := amount(cost.Float())
	weight := amount(0)
	given := Decimal{}
	for _, r := range with {
		weight += r.weight()
		upTo := decimalOf(float64(dollars * (weight / all)))
		r.charge(weights, dollars/all)
		r.Cost.Total = upTo.minus(given)
		given = upTo
	}
	return true
}

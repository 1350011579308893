package report

import "sessionfs/sessioncore/internal/rawjson"

// Sum is a sum of usages, with the keys that it has in usage.json.
type Sum struct {
	AssistantMessages int       `json:"assistantMessages"`
	Input             amount    `json:"input"`
	Output            amount    `json:"output"`
	CacheRead         amount    `json:"cacheRead"`
	CacheWrite        amount    `json:"cacheWrite"`
	TotalTokens       amount    `json:"totalTokens"`
	PremiumRequests   Decimal   `json:"premiumRequests"`
	Cost              usageCost `json:"cost,omitzero"` // in dollars
	// Listed is the part of Cost.Total that is made of list prices, as no client recorded it.
	Listed Decimal `json:"listed,omitzero"`
	// Unpriced is how many usages with tokens have no cost. Without any that has one the sum has
	// none either.
	Unpriced int `json:"unpriced,omitempty"`
}

type usageCost struct {
	Input      Decimal `json:"input"`
	Output     Decimal `json:"output"`
	CacheRead  Decimal `json:"cacheRead"`
	CacheWrite Decimal `json:"cacheWrite"`
	Total      Decimal `json:"total"`

	known, unknown bool // some usage has a recorded cost; some usage has none
}

// IsZero omits the cost from JSON where it is unknown.
func (c usageCost) IsZero() bool { return c.unknown && !c.known }

// amount is a number of tokens, or the price of one. A sum that overflows is written as null, as JavaScript
// does.
type amount float64

// MarshalJSON implements json.Marshaler.
func (a amount) MarshalJSON() ([]byte, error) { return rawjson.AppendNumber(nil, float64(a)), nil }

// Add adds v.
func (u *Sum) Add(v *Sum) {
	u.AssistantMessages += v.AssistantMessages
	u.Unpriced += v.Unpriced
	u.Cost.known = u.Cost.known || v.Cost.known
	u.Cost.unknown = u.Cost.unknown || v.Unpriced > 0
	u.Input += v.Input
	u.Output += v.Output
	u.CacheRead += v.CacheRead
	u.CacheWrite += v.CacheWrite
	u.TotalTokens += v.TotalTokens
	more := v.decimals()
	for i, n := range u.decimals() {
		*n = n.Add(*more[i])
	}
}

// decimals returns the numbers of the sum that are added as Decimal.
func (u *Sum) decimals() [7]*Decimal {
	c := &u.Cost
	return [...]*Decimal{
		&u.PremiumRequests, &u.Listed, &c.Input, &c.Output, &c.CacheRead, &c.CacheWrite, &c.Total,
	}
}

// addTo adds v to the sum of a key.
func addTo[K comparable](sums map[K]*Sum, key K, v *Sum) {
	if sums[key] == nil {
		sums[key] = &Sum{}
	}
	sums[key].Add(v)
}

// beyondCopy returns the part of a usage that a copy with fewer tokens lacks. As a rule the copy was
// made while the answer was written, and so lacks a part of the output alone.
func (u *Sum) beyondCopy(counted amount) Sum {
	more := u.TotalTokens - counted
	left := Sum{TotalTokens: more, Cost: usageCost{known: u.Cost.known}}
	if more <= u.Output {
		part := more / u.Output
		left.Output = more
		left.Cost.Output = u.Cost.Output.share(float64(part))
		left.Cost.Total = left.Cost.Output
	} else {
		part := more / u.TotalTokens
		left.Input = u.Input * part
		left.Output = u.Output * part
		left.CacheRead = u.CacheRead * part
		left.CacheWrite = u.CacheWrite * part
		costs := left.decimals()
		for i, whole := range u.decimals() {
			*costs[i] = whole.share(float64(part))
		}
	}
	if u.Listed.isPositive() {
		left.Listed = left.Cost.Total
	}
	return left
}

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

// Add adds another sum, or a single usage. Its cost is unknown if it has usages without one.
func (u *Sum) Add(other *Sum) {
	u.AssistantMessages += other.AssistantMessages
	u.Unpriced += other.Unpriced
	u.Cost.known = u.Cost.known || other.Cost.known
	u.Cost.unknown = u.Cost.unknown || other.Unpriced > 0
	u.Input += other.Input
	u.Output += other.Output
	u.CacheRead += other.CacheRead
	u.CacheWrite += other.CacheWrite
	u.TotalTokens += other.TotalTokens
	added := other.decimals()
	for i, number := range u.decimals() {
		*number = number.Add(*added[i])
	}
}

// decimals returns pointers to the numbers of the sum that are added as Decimal, always in the same order.
func (u *Sum) decimals() [7]*Decimal {
	c := &u.Cost
	return [...]*Decimal{
		&u.PremiumRequests, &u.Listed, &c.Input, &c.Output, &c.CacheRead, &c.CacheWrite, &c.Total,
	}
}

// addTo adds a sum to the sum of a key, which may be new. It keeps no pointer to added.
func addTo[K comparable](sums map[K]*Sum, key K, added *Sum) {
	if sums[key] == nil {
		sums[key] = &Sum{}
	}
	sums[key].Add(added)
}

// beyondCopy returns the part of a usage that a copy lacks, which counted fewer tokens. As a rule the
// copy was made while the answer was written, and so lacks a part of the output alone; otherwise it
// lacks the same part of everything. The rest is no message of its own.
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

package report

import (
	"bytes"
	"encoding/json"

	"sessionfs/sessioncore/internal/rawjson"
)

// Sum is a sum of usages, with the keys that it has in usage.json.
type Sum struct {
	AssistantMessages int       `json:"assistantMessages"`
	Input             amount    `json:"input"`
	Output            amount    `json:"output"`
	CacheRead         amount    `json:"cacheRead"`
	CacheWrite        amount    `json:"cacheWrite"`
	TotalTokens       amount    `json:"totalTokens"`
	PremiumRequests   amount    `json:"premiumRequests"`
	Cost              usageCost `json:"cost,omitzero"` // in dollars
	// Listed is the part of Cost.Total that is made of list prices, as no client recorded it.
	Listed amount `json:"listed,omitzero"`
	// Unpriced is how many usages with tokens have no cost. Without any that has one the sum has none either.
	Unpriced int `json:"unpriced,omitempty"`
}

type usageCost struct {
	Input      amount `json:"input"`
	Output     amount `json:"output"`
	CacheRead  amount `json:"cacheRead"`
	CacheWrite amount `json:"cacheWrite"`
	Total      amount `json:"total"`

	known, unknown bool // somebody said what it is of some usage; nobody did
}

// IsZero implements what encoding/json asks.
func (c usageCost) IsZero() bool { return c.unknown && !c.known }

// amount is a number of tokens or dollars. A sum that overflows is written as null, as JavaScript does.
type amount float64

// MarshalJSON implements json.Marshaler.
func (a amount) MarshalJSON() ([]byte, error) { return rawjson.AppendNumber(nil, float64(a)), nil }

// usageSums is the usage of a set of entries, in total and by model.
type usageSums struct {
	Total  Sum             `json:"total"`
	Models map[string]*Sum `json:"models"`
}

// usageJSON is the content of usage.json: the sums of the session and of a branch.
type usageJSON struct {
	Total Sum `json:"total"`
	Own   Sum `json:"own"` // without entries that the parent has too
	// Subagents is the part of the costs of subagents' sessions that Total lacks.
	Subagents Sum             `json:"subagents"`
	Models    map[string]*Sum `json:"models"`
	Branch    usageSums       `json:"branch"`
	// Bytes and RepeatedImages are about the file, whatever the branch.
	Bytes          roomBytes      `json:"bytes"`
	RepeatedImages repeatedImages `json:"repeatedImages"`
}

func sumUsage(records []usageRecord) usageSums {
	sums := usageSums{Models: map[string]*Sum{}}
	for i := range records {
		sums.Total.Add(&records[i].Sum)
		AddTo(sums.Models, records[i].model, &records[i].Sum)
	}
	return sums
}

// AddTo adds v to the sum of a key.
func AddTo[K comparable](sums map[K]*Sum, key K, v *Sum) {
	if sums[key] == nil {
		sums[key] = &Sum{}
	}
	sums[key].Add(v)
}

// Add adds v.
func (u *Sum) Add(v *Sum) {
	u.AssistantMessages += v.AssistantMessages
	u.Input += v.Input
	u.Output += v.Output
	u.CacheRead += v.CacheRead
	u.CacheWrite += v.CacheWrite
	u.TotalTokens += v.TotalTokens
	u.PremiumRequests += v.PremiumRequests
	u.Cost.Input += v.Cost.Input
	u.Cost.Output += v.Cost.Output
	u.Cost.CacheRead += v.Cost.CacheRead
	u.Cost.CacheWrite += v.Cost.CacheWrite
	u.Cost.Total += v.Cost.Total
	u.Cost.known = u.Cost.known || v.Cost.known
	u.Listed += v.Listed
	u.Cost.unknown = u.Cost.unknown || v.Unpriced > 0
	u.Unpriced += v.Unpriced
}

// text returns the document. Names of models are not escaped for HTML.
func (u *usageJSON) text() ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(u)
	return out.Bytes(), err
}

package report

import (
	"bytes"
	"context"
	"math"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/storage"
)

// This file counts the charges of another agent's session, which needs no text. They are the same usages as those
// of the session's entries.

// chargesOf is costsOf for the open file of another agent's session. isWhole is false if only the session's text
// tells them.
func (c *Costs) chargesOf(
	ctx context.Context, info *listing.Info, file storage.Object, prices Prices,
) (costs sessionCosts, isWhole bool, err error) {
	charging, ok := file.(agents.Charging)
	if !ok {
		return costs, false, nil
	}
	var all charges
	isWhole, err = c.kept.Charge(ctx, info.BaseName(), info.Stat.Token, charging, &all)
	if err != nil || !isWhole {
		return costs, false, err
	}
	costs.covers = all.covers()
	costs.records = prices.priced(all.records)
	return costs, true, nil
}

// charges collects the usages of a session. It implements agents.Ledger.
type charges struct {
	allUsage
	times []int64 // the times of the answers, in ms since the epoch

	provider string // the provider of the last charge
	model    []byte // the model of the last charge, as JSON
	name     string // the name of both
}

// Begin implements agents.Ledger.
func (c *charges) Begin() {
	c.records = c.records[:0]
	c.times = c.times[:0]
}

// Charge implements agents.Ledger.
func (c *charges) Charge(of *agents.Charge) {
	own := c.usageOf(of)
	c.addUsage(of, 0, own)
	if len(of.Calls) > 0 {
		c.addCalls(of)
	}
	c.times = append(c.times, of.At) // last, as its length is the number of the answer meanwhile
}

// addCalls adds the usages of calls of other models, which the answer's own lacks, up to maxParts. It adds them
// behind the answer's own, which has the number 0.
func (c *charges) addCalls(of *agents.Charge) {
	list := append([]byte{'['}, of.Calls...)
	list = append(list, ']')
	provider := agents.Quoted(of.Provider)
	nth := 0
	for call := range rawjson.Value(list).EachElement {
		nth++
		model := modelName(provider, call.Member("model"))
		c.addUsage(of, nth, usageOf(model, call))
		if nth >= maxParts {
			break
		}
	}
}

// addUsage adds the nth usage of an answer, counted from 0. The answer's number stands for its entry.
func (c *charges) addUsage(of *agents.Charge, nth int, one usage) {
	answer := sessioncore.Entry(len(c.times))
	c.add(answer, keyOf(of.ID, of.At, nth), of.At, one)
}

// usageOf returns the usage of the answer itself.
func (c *charges) usageOf(of *agents.Charge) usage {
	model := c.nameOf(of)
	u := usage{model: model}
	if len(of.Cost) > 0 {
		object := append([]byte{'{'}, of.Cost...)
		object = append(object, '}')
		u = usageOf(model, object)
	}
	u.AssistantMessages = 1
	u.Input = amount(of.Usage.Input)
	u.Output = amount(of.Usage.Output)
	u.CacheRead = amount(of.Usage.CacheRead)
	u.CacheWrite = amount(of.Usage.CacheWrite)
	u.TotalTokens = amount(of.Usage.Total)
	u.PremiumRequests = decimalOf(max(0, of.Usage.Premium))
	u.hour = min(amount(of.Usage.CacheWrite1h), u.CacheWrite)
	u.fast = of.Usage.Fast
	u.ended = min(of.Usage.Ended, maxTime)
	if u.isFree() {
		u.Cost.known = false // the program fills in 0 where the agent recorded nothing
	}
	u.settle()
	return u
}

// nameOf returns the name of the model of a charge. Charges in a row are mostly of one model.
func (c *charges) nameOf(of *agents.Charge) string {
	isSame := of.Provider == c.provider && bytes.Equal(of.Model, c.model)
	if isSame {
		return c.name
	}
	c.provider = of.Provider
	c.model = append(c.model[:0], of.Model...)
	c.name = modelName(agents.Quoted(of.Provider), of.Model)
	return c.name
}

// covers returns the spans with costs of subagents in the session itself, as coversOf does.
func (c *charges) covers() (covers []cover) {
	for i := range c.records {
		r := &c.records[i]
		if r.session == nil {
			continue
		}
		next := int64(math.MaxInt64)
		if i+1 < len(c.records) {
			next = c.times[c.records[i+1].entry]
		}
		covers = append(covers, coverUntil(c.times[r.entry], next))
	}
	return covers
}

package report

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"hash/maphash"
	"maps"
	"slices"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/rawjson"
)

// This file computes the cost of a session, as the client counts it: the usage of each assistant
// message, of the subagents that the result of a task tool reports, and of the calls outside the
// conversation that newer clients record as model_usage. All entries of the file count, on any
// branch.

// usageRecord is a usage that an entry reports, about 200 bytes. An answer reports its own, and one
// for each call of another model that its own numbers do not have.
type usageRecord struct {
	entry sessioncore.Entry
	copy  uint64 // a key that all copies of the usage have, in whatever session, and no other; 0 if there are no copies
	time  int64  // in ms since the epoch
	usage
}

// usage is the content of one reported usage.
type usage struct {
	model   string
	hour    amount // the part of Sum.CacheWrite that the cache keeps for an hour
	fast    bool   // the model answered in fast mode
	ended   int64  // time of billing in ms, if that is not the entry's; else 0
	session *sessionCost
	Sum
}

// sessionCost is the cost of a whole session up to an entry, where the client recorded that: in
// total, and by model.
type sessionCost struct {
	total  Decimal
	models map[string]Decimal
}

// seed is random in each process, so that no file can be made to have hashes that collide.
var seed = maphash.MakeSeed()

// copyKey returns a hash of the identity that the nth usage of an entry shares with its copies
// only. Clients and this program keep the id and the timestamp of entries that they
// copy, and an id of 32 random bits is not drawn twice in the same millisecond
// (docs/design.md, usage.json). It is 0 for an entry without id or timestamp.
func copyKey(s *sessioncore.Snapshot, e sessioncore.Entry, nth int) uint64 {
	id, ok := s.ID(e)
	at, hasTime := s.OwnTime(e)
	if !ok || !hasTime {
		return 0
	}
	return keyOf(id, at.UnixMilli(), nth)
}

// keyOf returns copyKey for the nth usage of an entry with an id and a time, in ms since the epoch.
func keyOf(id string, at int64, nth int) uint64 {
	identity := struct {
		id  string
		at  int64
		nth int
	}{id, at, nth}
	hash := maphash.Comparable(seed, identity)
	return max(hash, 1) // as 0 is no key
}

// usageJSON is the content of usage.json.
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

// usageSums is the usage of a set of entries, in total and by model.
type usageSums struct {
	Total  Sum             `json:"total"`
	Models map[string]*Sum `json:"models"`
}

// sumUsage adds up records. Models is not nil.
func sumUsage(records []usageRecord) usageSums {
	sums := usageSums{Models: map[string]*Sum{}}
	for i := range records {
		r := &records[i]
		sums.Total.Add(&r.Sum)
		addTo(sums.Models, r.model, &r.Sum)
	}
	return sums
}

// Usage returns usage.json (docs/design.md section 1). The branch ends in leaf, which may be
// NoEntry; parent is nil if there is none; subagents is the sum of their sessions. Tokens
// are added as doubles, dollars as Decimals. Usages without a cost get one by prices.
func Usage(
	ctx context.Context, s *sessioncore.Snapshot, leaf sessioncore.Entry, parent *sessioncore.Snapshot, prices Prices,
	subagents Sum,
) (*document.Document, error) {
	records, err := usageRecordsOf(ctx, s)
	if err != nil {
		return nil, err
	}
	records = prices.priced(records)
	sums := sumUsage(records)
	own := records
	if parent != nil {
		others, err := usageRecordsOf(ctx, parent)
		if err != nil {
			return nil, err
		}
		own = without(records, others)
	}
	doc := usageJSON{
		Total:     sums.Total,
		Own:       sumUsage(own).Total,
		Subagents: subagents,
		Models:    sums.Models,
	}
	doc.Branch = sumUsage(onBranch(s, leaf, records))
	room, err := factsOf(ctx, s, addRoom)
	if err != nil {
		return nil, err
	}
	b := room.bytes
	b.Other = s.Stat().Size - b.Text - b.Thinking - b.ToolCalls - b.ToolResults - b.Images
	doc.Bytes = b
	doc.RepeatedImages = room.repeated
	var out bytes.Buffer
	err = json.Indent(&out, rawjson.AppendLine(nil, doc), "", "  ")
	if err != nil {
		return nil, err
	}
	return document.OfText(s, out.Bytes()), nil
}

// Spent returns the costs of a session with its subagents, and the session's own models, the model with
// the most tokens first. subagents is the sum of their sessions. Usages without a cost get one by prices.
func Spent(ctx context.Context, s *sessioncore.Snapshot, prices Prices, subagents Sum) (sum Sum, models []string, err error) {
	records, err := usageRecordsOf(ctx, s)
	if err != nil {
		return sum, nil, err
	}
	sums := sumUsage(prices.priced(records))
	models = slices.SortedFunc(maps.Keys(sums.Models), func(a, b string) int {
		order := cmp.Compare(sums.Models[b].TotalTokens, sums.Models[a].TotalTokens)
		if order == 0 {
			order = cmp.Compare(a, b)
		}
		return order
	})
	sum = sums.Total
	sum.Add(&subagents)
	return sum, models, nil
}

// onBranch returns the records of the entries on the path to leaf, in its order; nil for NoEntry. records are
// in file order.
func onBranch(s *sessioncore.Snapshot, leaf sessioncore.Entry, records []usageRecord) (branch []usageRecord) {
	if leaf == sessioncore.NoEntry {
		return nil
	}
	byEntry := func(r usageRecord, e sessioncore.Entry) int {
		return cmp.Compare(r.entry, e)
	}
	for _, e := range s.Path(leaf) {
		i, _ := slices.BinarySearchFunc(records, e, byEntry)
		for ; i < len(records) && records[i].entry == e; i++ {
			branch = append(branch, records[i])
		}
	}
	return branch
}

// without returns the records that are not copies of records in others.
func without(records, others []usageRecord) (own []usageRecord) {
	taken := make(map[uint64]bool, len(others))
	for i := range others {
		key := others[i].copy
		taken[key] = key != 0 // without a key it has no copies
	}
	for i := range records {
		if !taken[records[i].copy] {
			own = append(own, records[i])
		}
	}
	return own
}

// allUsage is the usage of the entries of an index.
type allUsage struct {
	records []usageRecord     // in file order
	models  map[string]string // each to itself, so that it is held once
}

// usageRecordsOf returns the records of a snapshot's entries in file order, all
// confirmed.
func usageRecordsOf(ctx context.Context, s *sessioncore.Snapshot) ([]usageRecord, error) {
	all, err := factsOf(ctx, s, addUsage)
	return slices.Clip(all.records), err
}

// addUsage adds the usages of the entries from one on. After an error only some may have been added.
func addUsage(ctx context.Context, s *sessioncore.Snapshot, from int, to *allUsage) error {
	var entries []sessioncore.Entry
	for e := sessioncore.Entry(from); int(e) < s.Len(); e++ {
		if mayReport(s, e) {
			entries = append(entries, e)
		}
	}
	answers := readAnswers(ctx, s, entries)
	reader := sessioncore.NewEntryReader(s)
	for i, e := range entries {
		usages := answers[i]
		if usages == nil {
			text, err := reader.Read(e)
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return err
			}
			usages = usagesOf(s, e, text)
		}
		at := s.Time(e).UnixMilli()
		for nth, one := range usages {
			key := copyKey(s, e, nth)
			to.add(e, key, at, one)
		}
	}
	return nil
}

// add adds a usage of an entry with a time, in ms since the epoch. key is the key of its copies.
func (u *allUsage) add(e sessioncore.Entry, key uint64, at int64, one usage) {
	one.model = u.named(one.model)
	if one.ended != 0 {
		at = one.ended
	}
	u.records = append(u.records, usageRecord{
		entry: e,
		copy:  key,
		time:  at,
		usage: one,
	})
}

const (
	// otherModel is the name for all models beyond maxModels.
	otherModel = "other"
	// maxModels is the maximum number of models per session that are told apart. Real sessions use
	// fewer, and a hostile file cannot fill the memory with names.
	maxModels = 1000
)

// named returns the name under which a model counts: its own, or otherModel beyond maxModels. It adds the
// model to models.
func (u *allUsage) named(model string) string {
	known, ok := u.models[model]
	switch {
	case ok:
		return known
	case len(u.models) >= maxModels:
		return otherModel
	case u.models == nil:
		u.models = map[string]string{}
	}
	u.models[model] = model
	return model
}

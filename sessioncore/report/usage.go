package report

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/markdown"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
	"sessionfs/sessioncore/storage"
)

// This file computes what a session cost, as the client counts it: the usage of each assistant message, of the
// subagents that a task tool's result reports, and of the calls outside the conversation that newer clients record
// as model_usage. All entries of the file count, on whatever branch.

// usageRecord is the usage that an entry reports, about 150 bytes.
type usageRecord struct {
	entry sessioncore.Entry
	model string
	Sum
}

// compare compares a record's entry with another.
func (r usageRecord) compare(e sessioncore.Entry) int { return cmp.Compare(r.entry, e) }

// usageKey is the key of the usageRecords in Snapshot.Shared. An index can become one of another dialect.
type usageKey struct{ dialect *sessioncore.Dialect }

// usageRecords caches the usage of the entries, so that each entry is read once. The snapshots of one index share
// it: their entries never change.
type usageRecords struct {
	mu      sync.Mutex // guards the fields below; held while entries are read
	looked  int        // number of entries that were read
	records []usageRecord
	models  map[string]string // each to itself, so that it is held once
}

const (
	// subagentsModel is the name for the usage of subagents: a task's result does not report which models they used.
	// Names of models have a slash.
	subagentsModel = "(subagents)"
	// piToolsModel is pi's own name for the usage of tools, compactions and branch summaries.
	piToolsModel = "Tools/summaries"
	// otherModel is the name for all models beyond maxModels.
	otherModel = "other"
	// maxModels is the maximum number of models per session that are told apart. Real sessions use fewer, and a
	// hostile file cannot fill the memory with names.
	maxModels = 1000
	// maxModelName is the maximum length of the name of a provider or model, in characters.
	maxModelName = 200
)

// Usage returns usage.json: the totals of the session, overall, without what its parent has too, and by model, what takes the room
// of its file, and the totals of the branch that ends in leaf, which may be NoEntry (docs/design.md section 1). parent is nil if there is
// none. Numbers are added as doubles, in file order and in the order of the branch.
// Usages without a cost get one by prices.
func Usage(ctx context.Context, s *sessioncore.Snapshot, leaf sessioncore.Entry, parent *sessioncore.Snapshot, prices Prices) (*document.Document, error) {
	records, err := usageRecordsOf(s).of(ctx, s)
	if err != nil {
		return nil, err
	}
	var branch []usageRecord
	if leaf != sessioncore.NoEntry {
		for _, e := range s.Path(leaf) {
			if i, ok := slices.BinarySearchFunc(records, e, usageRecord.compare); ok {
				branch = append(branch, records[i])
			}
		}
	}
	own := records
	if parent != nil {
		others, err := usageRecordsOf(parent).of(ctx, parent)
		if err != nil {
			return nil, err
		}
		own = without(s, records, parent, others)
	}
	sums := sumUsage(records, prices)
	doc := usageJSON{Total: sums.Total, Own: sumUsage(own, prices).Total, Models: sums.Models, Branch: sumUsage(branch, prices)}
	if doc.Bytes, doc.RepeatedImages, err = roomOf(ctx, s); err != nil {
		return nil, err
	}
	text, err := doc.text()
	if err != nil {
		return nil, err
	}
	return document.OfText(s, text), nil
}

func usageRecordsOf(s *sessioncore.Snapshot) *usageRecords {
	return s.Shared(usageKey{s.Dialect()}, func() any { return &usageRecords{models: map[string]string{}} }).(*usageRecords)
}

// of returns the records of a snapshot's entries in file order, all of which are confirmed.
func (u *usageRecords) of(ctx context.Context, s *sessioncore.Snapshot) ([]usageRecord, error) {
	if err := s.Confirm(ctx); err != nil {
		return nil, err
	}
	if err := storage.LockUntil(ctx, &u.mu); err != nil {
		return nil, err
	}
	defer u.mu.Unlock()
	if err := u.look(ctx, s); err != nil {
		return nil, err
	}
	n, _ := slices.BinarySearchFunc(u.records, sessioncore.Entry(s.Len()), usageRecord.compare)
	return u.records[:n:n], nil
}

// look reads the entries that have not been read yet. Callers must hold u.mu.
func (u *usageRecords) look(ctx context.Context, s *sessioncore.Snapshot) error {
	var entries []sessioncore.Entry
	for e := u.looked; e < s.Len(); e++ {
		if e := sessioncore.Entry(e); mayReport(s, e) {
			entries = append(entries, e)
		}
	}
	type found struct {
		model string
		sum   Sum
		ok    bool
	}
	all := make([]found, len(entries))
	others := readAnswers(ctx, s, entries, func(i int, model string, sum Sum) { all[i] = found{model, sum, true} })
	whole := make([]sessioncore.Entry, len(others))
	for i, at := range others {
		whole[i] = entries[at]
	}
	err := s.ReadEntries(ctx, whole, func() func(int, rawjson.Value) error {
		return func(i int, text rawjson.Value) error {
			f := &all[others[i]]
			f.model, f.sum, f.ok = usageOf(s, whole[i], text)
			return nil
		}
	})
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].ok {
			u.records = append(u.records, usageRecord{entries[i], u.named(all[i].model), all[i].sum})
		}
	}
	u.looked = max(u.looked, s.Len())
	return nil
}

// mayReport reports whether an entry can report a usage, so that it has to be read. Most of a session is what other
// tools returned.
func mayReport(s *sessioncore.Snapshot, e sessioncore.Entry) bool {
	switch s.Kind(e) {
	case sessioncore.TypeUnknown:
		return true
	case sessioncore.TypeUsage, sessioncore.TypeCompaction, sessioncore.TypeBranchSummary:
		return s.Dialect() == sessioncore.Pi
	case sessioncore.TypeMessage:
		role := s.Role(e)
		return role == sessioncore.RoleAssistant || s.PathLabel(e) == taskLabel ||
			role == sessioncore.RoleToolResult && s.Dialect() == sessioncore.Pi
	}
	return false
}

// taskLabel is the path label of the results of the tool that calls subagents.
const taskLabel = "toolResult-task"

// named returns the name under which a model counts. Callers must hold u.mu.
func (u *usageRecords) named(model string) string {
	known, ok := u.models[model]
	switch {
	case ok:
		return known
	case len(u.models) >= maxModels:
		return otherModel
	}
	u.models[model] = model
	return model
}

// usageOf returns the usage that an entry reports and the name under which it counts. ok is false if it reports
// none.
func usageOf(s *sessioncore.Snapshot, e sessioncore.Entry, text rawjson.Value) (model string, sum Sum, ok bool) {
	kind, isPi := s.Kind(e), s.Dialect() == sessioncore.Pi // docs/format.md, pi
	if kind == sessioncore.TypeMessage {
		text = s.Message(e, text)
	}
	m := message.Read(text)
	usage := m[message.Usage]
	switch {
	case isAnswer(s, e):
		model, sum = ofAnswer(s, &m)
		return model, sum, true
	case kind == sessioncore.TypeUsage && isPi, kind == sessioncore.TypeUnknown && !isPi && m[message.Type].Is("model_usage"):
		return modelName(m[message.Provider], m[message.Model]), sumOf(usage), true
	case kind == sessioncore.TypeUnknown:
		return "", sum, false
	case isPi:
		return piToolsModel, sumOf(usage), usage.IsObject() && (kind != sessioncore.TypeMessage || s.Role(e) == sessioncore.RoleToolResult)
	}
	usage = m[message.Details].Member("usage")
	return subagentsModel, sumOf(usage), usage.IsObject() && m[message.ToolName].Is("task") && m.Role() == "toolResult"
}

// modelName returns the name of a model: the provider and the model, separated by a slash.
func modelName(provider, model rawjson.Value) string {
	name := func(v rawjson.Value) string {
		text, _ := v.Bytes()
		return cmp.Or(string(markdown.Line(text, maxModelName)), "unknown")
	}
	return name(provider) + "/" + name(model)
}

// sumOf parses a usage. Numbers that are missing or invalid count as 0, except totalTokens, which old clients did
// not write: it is then the sum of the others.
func sumOf(usage rawjson.Value) (sum Sum) {
	readCounts(usage, []count{{"input", &sum.Input}, {"output", &sum.Output}, {"cacheRead", &sum.CacheRead}, {"cacheWrite", &sum.CacheWrite},
		{"totalTokens", &sum.TotalTokens}, {"premiumRequests", &sum.PremiumRequests}})
	c := &sum.Cost
	cost := usage.Member("cost")
	readCounts(cost, []count{{"input", &c.Input}, {"output", &c.Output}, {"cacheRead", &c.CacheRead}, {"cacheWrite", &c.CacheWrite}, {"total", &c.Total}})
	if !usage.AnyOf("totalTokens", "total_tokens").IsNumber() {
		sum.TotalTokens = sum.Input + sum.Output + sum.CacheRead + sum.CacheWrite
	}
	if c.known = cost.IsObject(); !c.known && sum.TotalTokens != 0 {
		sum.Unpriced = 1
	}
	return sum
}

// count is a member of a usage, and where it goes.
type count struct {
	key string
	to  *amount
}

func readCounts(v rawjson.Value, counts []count) {
	for m := range v.EachMember {
		name := m.Name()
		for _, c := range counts {
			if c.key == name {
				*c.to = countOf(m.Value)
			}
		}
	}
}

// countOf returns v as a double, 0 if v is not a number or overflows float64.
func countOf(v rawjson.Value) amount {
	if !v.IsNumber() {
		return 0
	}
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil {
		return 0
	}
	return amount(f)
}

package report

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
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

// usageRecord is a usage that an entry reports, about 200 bytes. An answer reports one of its own, and one for each call of
// another model that its own numbers do not have.
type usageRecord struct {
	entry sessioncore.Entry
	nth   int // of the entry's records
	usage
}

// usage is the content of one reported usage.
type usage struct {
	model   string
	hour    amount // the part of Sum.CacheWrite that the cache keeps for an hour
	fast    bool   // the model answered in fast mode
	ended   int64  // time in ms at which it was billed, if that is not the entry's; else 0
	session *sessionCost
	Sum
}

// sessionCost is the cost of a whole session up to an entry, where the client recorded that: in total, and by model.
type sessionCost struct {
	total  amount
	models map[string]amount
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
	// maxTime is the latest time that JSON of a client can name, in ms since the epoch.
	maxTime = 8_640_000_000_000_000
	// maxModelName is the maximum length of the name of a provider or model, in characters.
	maxModelName = 200
)

// Usage returns usage.json: the totals of the session, overall, without what its parent has too, and by model, what takes the room
// of its file, and the totals of the branch that ends in leaf, which may be NoEntry (docs/design.md section 1). parent is nil if there is
// none. Numbers are added as doubles, in file order and in the order of the branch. Usages without a cost get one by prices.
// subagents is the sum of the sessions of subagents.
func Usage(ctx context.Context, s *sessioncore.Snapshot, leaf sessioncore.Entry, parent *sessioncore.Snapshot, prices Prices, subagents Sum) (*document.Document, error) {
	records, err := usageRecordsOf(s).of(ctx, s)
	if err != nil {
		return nil, err
	}
	records = prices.priced(records)
	var branch []usageRecord
	if leaf != sessioncore.NoEntry {
		for _, e := range s.Path(leaf) {
			i, _ := slices.BinarySearchFunc(records, e, usageRecord.compare)
			for ; i < len(records) && records[i].entry == e; i++ {
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
	sums := sumUsage(records)
	doc := usageJSON{Total: sums.Total, Own: sumUsage(own).Total, Subagents: subagents, Models: sums.Models, Branch: sumUsage(branch)}
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
	all := make([][]usage, len(entries)) // the usages that each of them reports
	others := readAnswers(ctx, s, entries, func(i int, of []usage) { all[i] = of })
	whole := make([]sessioncore.Entry, len(others))
	for i, at := range others {
		whole[i] = entries[at]
	}
	err := s.ReadEntries(ctx, whole, func() func(int, rawjson.Value) error {
		return func(i int, text rawjson.Value) error {
			all[others[i]] = usagesOf(s, whole[i], text)
			return nil
		}
	})
	if err != nil {
		return err
	}
	for i, of := range all {
		for nth, one := range of {
			one.model = u.named(one.model)
			u.records = append(u.records, usageRecord{entries[i], nth, one})
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

// usagesOf returns the usages that an entry reports, with the names under which they count.
func usagesOf(s *sessioncore.Snapshot, e sessioncore.Entry, text rawjson.Value) []usage {
	kind, isPi := s.Kind(e), s.Dialect() == sessioncore.Pi // docs/format.md, pi
	whole := text
	if kind == sessioncore.TypeMessage {
		text = s.Message(e, text)
	}
	m := message.Read(text)
	reported := m[message.Usage]
	of := func(model string, reported rawjson.Value, ok bool) []usage {
		if !ok {
			return nil
		}
		return []usage{usageOf(model, reported)}
	}
	switch {
	case isAnswer(s, e):
		all := usagesOfAnswer(s, &m)
		if !whole.Member("origin").Missing() {
			all[0].forgetZero()
		}
		return all
	case kind == sessioncore.TypeUsage && isPi, kind == sessioncore.TypeUnknown && !isPi && m[message.Type].Is("model_usage"):
		return of(modelName(m[message.Provider], m[message.Model]), reported, true)
	case kind == sessioncore.TypeUnknown:
		return nil
	case isPi:
		return of(piToolsModel, reported, reported.IsObject() && (kind != sessioncore.TypeMessage || s.Role(e) == sessioncore.RoleToolResult))
	}
	reported = m[message.Details].Member("usage")
	return of(subagentsModel, reported, reported.IsObject() && m[message.ToolName].Is("task") && m.Role() == "toolResult")
}

// modelName returns the name of a model: the provider and the model, separated by a slash.
func modelName(provider, model rawjson.Value) string {
	name := append(appendName(make([]byte, 0, 64), provider), '/')
	return string(appendName(name, model))
}

// appendName appends the name of a provider or a model.
func appendName(dst []byte, v rawjson.Value) []byte {
	text, _ := v.Bytes()
	if len(text) > maxModelName || !isPlain(text) {
		text = []byte(markdown.Line(text, maxModelName))
	}
	if len(text) == 0 {
		return append(dst, "unknown"...)
	}
	return append(dst, text...)
}

// isPlain reports whether a name has only letters, digits, dots, dashes and underscores, as nearly all have.
func isPlain(name []byte) bool {
	for _, c := range name {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && c != '-' && c != '.' && c != '_' {
			return false
		}
	}
	return true
}

// usageOf parses the usage of a model. Numbers that are missing or invalid count as 0, except totalTokens, which old clients
// did not write: it is then the sum of the others.
func usageOf(model string, v rawjson.Value) usage {
	u := usage{model: model}
	hasTotal := false
	for m := range v.EachMember {
		switch string(m.CamelName()) {
		case "input":
			u.Input = countOf(m.Value)
		case "output":
			u.Output = countOf(m.Value)
		case "cacheRead":
			u.CacheRead = countOf(m.Value)
		case "cacheWrite":
			u.CacheWrite = countOf(m.Value)
		case "cacheWrite1h":
			u.hour = max(0, countOf(m.Value))
		case "totalTokens":
			u.TotalTokens, hasTotal = countOf(m.Value), m.Value.IsNumber()
		case "premiumRequests":
			u.PremiumRequests = countOf(m.Value)
		case "speed":
			u.fast = m.Value.Is("fast")
		case "ended":
			u.ended = int64(max(0, min(countOf(m.Value), maxTime)))
		case "cost":
			u.Cost = costOf(m.Value)
		case "sessionCost":
			u.session = sessionCostOf(m.Value, model)
		}
	}
	if !hasTotal {
		u.TotalTokens = u.Input + u.Output + u.CacheRead + u.CacheWrite
	}
	u.hour = min(u.hour, u.CacheWrite)
	u.settle()
	return u
}

// costOf parses the cost of a usage. Where an unrecorded one is marked, the client said nothing.
func costOf(v rawjson.Value) (c usageCost) {
	c.known = v.IsObject()
	for m := range v.EachMember {
		switch string(m.CamelName()) {
		case "input":
			c.Input = countOf(m.Value)
		case "output":
			c.Output = countOf(m.Value)
		case "cacheRead":
			c.CacheRead = countOf(m.Value)
		case "cacheWrite":
			c.CacheWrite = countOf(m.Value)
		case "total":
			c.Total = countOf(m.Value)
		case "unrecorded":
			c.known = c.known && string(m.Value) != "true"
		}
	}
	return c
}

// settle notes whether the cost of a usage is unknown.
func (u *usage) settle() {
	if u.Unpriced = 0; !u.Cost.known && u.TotalTokens != 0 {
		u.Unpriced = 1
	}
}

// forgetZero makes a recorded cost of 0 unknown.
func (u *usage) forgetZero() {
	if u.Cost == (usageCost{known: true}) {
		u.Cost.known = false
		u.settle()
	}
}

// maxParts bounds how many models the usage of one answer names, so that a hostile line cannot fill the memory.
const maxParts = 100

// sessionCostOf parses the cost of a session, of which model gave the answer that says it. Models have the provider of that one,
// and the part of the total that no model has is its own.
func sessionCostOf(v rawjson.Value, model string) *sessionCost {
	if !v.IsObject() {
		return nil
	}
	provider, _, _ := strings.Cut(model, "/")
	c := &sessionCost{models: map[string]amount{}}
	v.Member("models").EachMember(func(m rawjson.Member) bool {
		name, _ := m.Key.Bytes()
		name, _, _ = bytes.Cut(name, []byte("[")) // a context's length
		of := max(0, countOf(m.Value))
		c.models[provider+"/"+markdown.Line(name, maxModelName)] += of
		c.total += of
		return len(c.models) < maxParts
	})
	if total := countOf(v.Member("total")); total > c.total {
		c.models[model] += total - c.total
		c.total = total
	}
	return c
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

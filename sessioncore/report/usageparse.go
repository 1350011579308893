package report

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/markdown"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
	"sessionfs/sessioncore/storage"
)

// This file reads the usages that entries report.

const (
	// subagentsModel is the name for the usage of subagents: a task's result does not report which
	// models they used. Names of models have a slash.
	subagentsModel = "(subagents)"
	// piToolsModel is pi's own name for the usage of tools, compactions and branch summaries.
	piToolsModel = "Tools/summaries"
	// maxTime is the latest time that JSON of a client can name, in ms since the epoch.
	maxTime = 8_640_000_000_000_000
	// maxModelName is the maximum length of the name of a provider or model, in characters.
	maxModelName = 200
	// maxParts bounds how many models the usage of one answer names, so that a hostile line cannot
	// fill the memory.
	maxParts = 100
	// maxCostText is the longest text that is searched for an answer's cost by itself. Clients
	// write some 400 bytes.
	maxCostText = 16 << 10
	// taskLabel is the path label of the results of the tool that calls subagents.
	taskLabel = "toolResult-task"
)

// isAnswer reports whether an entry is an assistant's message.
func isAnswer(s *sessioncore.Snapshot, e sessioncore.Entry) bool {
	return s.IsMessage(e, sessioncore.RoleAssistant)
}

// isResult reports whether an entry is the result of a tool.
func isResult(s *sessioncore.Snapshot, e sessioncore.Entry) bool {
	return s.IsMessage(e, sessioncore.RoleToolResult)
}

// mayReport reports whether an entry must be read, since it can report a usage. Most of a session
// is results of other tools.
func mayReport(s *sessioncore.Snapshot, e sessioncore.Entry) bool {
	isPi := s.Dialect() == sessioncore.Pi
	switch s.Kind(e) {
	case sessioncore.TypeUnknown:
		return true
	case sessioncore.TypeUsage, sessioncore.TypeCompaction, sessioncore.TypeBranchSummary:
		return isPi
	case sessioncore.TypeMessage:
		isTask := s.PathLabel(e) == taskLabel
		isPiResult := isPi && isResult(s, e)
		return isTask || isPiResult || isAnswer(s, e)
	}
	return false
}

// readAnswers reads the usages of the answers among the entries, without the texts, which are most
// of a session. It returns nil for an entry that must be read whole. Without the text there is no
// checksum: if the file may have changed since it was indexed, that is every entry.
func readAnswers(ctx context.Context, s *sessioncore.Snapshot, entries []sessioncore.Entry) [][]usage {
	var buf []byte
	all := make([][]usage, len(entries))
	lookedAt := time.Now().UnixNano()
	for i, e := range entries {
		if !isAnswer(s, e) || ctx.Err() != nil {
			continue
		}
		var members rawjson.Value
		members, buf = costMembers(s, e, buf)
		if members != nil {
			m := message.Read(members)
			// Another program may have filled in a cost of 0, which only the whole entry tells.
			of := usagesOfAnswer(s, &m)
			if of[0].TotalTokens == 0 || !of[0].isFree() {
				all[i] = of
			}
		}
	}
	st, err := s.File().Stat()
	if err != nil || st.Token != s.Stat().Token || st.Racy(lookedAt) {
		clear(all)
	}
	return all
}

// costMembers reads an object with the members of an answer that tell its cost, nil if it cannot.
// It is in the returned buffer, which is buf or a larger one, and valid until the next call with that.
func costMembers(s *sessioncore.Snapshot, e sessioncore.Entry, buf []byte) (members rawjson.Value, _ []byte) {
	at := s.CostRange(e)
	if at.Size > maxCostText {
		return nil, buf
	}
	need := int(at.Size) + len("{}")
	if cap(buf) < need {
		buf = make([]byte, 2*need) // so that few longer ones need another one
	}
	text := buf[:need]
	last := need - 1
	text[0] = '{'
	text[last] = '}'
	err := storage.ReadFull(s.File(), text[1:last], at.Offset)
	if err != nil || !rawjson.IsValidObject(text) {
		return nil, buf
	}
	return text, buf
}

// usagesOf returns the usages that an entry with a text reports, with the names under which they count; nil for
// none.
func usagesOf(s *sessioncore.Snapshot, e sessioncore.Entry, text rawjson.Value) []usage {
	kind := s.Kind(e)
	isPi := s.Dialect() == sessioncore.Pi // docs/format.md, pi
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
		own := &all[0]
		isOfOther := !whole.Member("origin").Missing()
		if isOfOther && own.isFree() {
			own.Cost.known = false
			own.settle()
		}
		return all
	case isUsageEntry(kind, isPi, &m):
		model := modelName(m[message.Provider], m[message.Model])
		return of(model, reported, true)
	case kind == sessioncore.TypeUnknown:
		return nil
	case isPi:
		mayReport := kind != sessioncore.TypeMessage || isResult(s, e)
		return of(piToolsModel, reported, mayReport && reported.IsObject())
	}
	reported = m[message.Details].Member("usage")
	isTask := m[message.ToolName].Is("task") && m.Role() == "toolResult"
	return of(subagentsModel, reported, isTask && reported.IsObject())
}

// isUsageEntry reports whether an entry has nothing but a usage: pi and omp write it differently.
func isUsageEntry(kind sessioncore.EntryType, isPi bool, m *message.Members) bool {
	if isPi {
		return kind == sessioncore.TypeUsage
	}
	return kind == sessioncore.TypeUnknown && m[message.Type].Is("model_usage")
}

// usagesOfAnswer returns the usages of an answer: its own, and the usages of calls of other models, which
// its own lacks. An answer of pi may name the model that gave it.
func usagesOfAnswer(s *sessioncore.Snapshot, m *message.Members) []usage {
	provider := m[message.Provider]
	reported := m[message.Usage]
	by := m[message.Model]
	served := m[message.ResponseModel]
	if s.Dialect() == sessioncore.Pi && !served.Missing() {
		by = served
	}
	own := usageOf(modelName(provider, by), reported)
	own.AssistantMessages = 1
	all := []usage{own}
	if !bytes.Contains(reported, []byte("modelCalls")) {
		return all
	}
	for call := range reported.Member("modelCalls").EachElement {
		model := modelName(provider, call.Member("model"))
		all = append(all, usageOf(model, call))
		if len(all) > maxParts {
			break
		}
	}
	return all
}

// modelName returns the name of a model: the provider and the model, separated by a slash.
func modelName(provider, model rawjson.Value) string {
	name := appendName(make([]byte, 0, 64), provider)
	name = append(name, '/')
	return string(appendName(name, model))
}

// appendName appends the name of a provider or a model, on one line and at most maxModelName characters of it, or
// "unknown" for a value without text.
func appendName(dst []byte, v rawjson.Value) []byte {
	text, _ := v.Bytes()
	isOdd := func(r rune) bool { // nearly all names consist of others
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9', 'A' <= r && r <= 'Z', r == '-', r == '.', r == '_':
			return false
		}
		return true
	}
	if len(text) > maxModelName || bytes.ContainsFunc(text, isOdd) {
		text = []byte(markdown.Line(text, maxModelName))
	}
	if len(text) == 0 {
		return append(dst, "unknown"...)
	}
	return append(dst, text...)
}

// usageOf parses the usage of a model. Numbers that are missing or invalid count as 0, except
// totalTokens, which old clients did not write: it is then the sum of the others.
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
			u.TotalTokens = countOf(m.Value)
			hasTotal = m.Value.IsNumber()
		case "premiumRequests":
			u.PremiumRequests = decimalAt(m.Value)
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
			c.Input = decimalAt(m.Value)
		case "output":
			c.Output = decimalAt(m.Value)
		case "cacheRead":
			c.CacheRead = decimalAt(m.Value)
		case "cacheWrite":
			c.CacheWrite = decimalAt(m.Value)
		case "total":
			c.Total = decimalAt(m.Value)
		case "unrecorded":
			c.known = c.known && string(m.Value) != "true"
		}
	}
	return c
}

// settle sets Unpriced: to 1 if the usage has tokens and its cost is unknown. It follows each change of these.
func (u *usage) settle() {
	u.Unpriced = 0
	if !u.Cost.known && u.TotalTokens != 0 {
		u.Unpriced = 1
	}
}

// isFree reports whether a usage has a recorded cost of 0.
func (u *usage) isFree() bool { return u.Cost == usageCost{known: true} }

// sessionCostOf parses the cost of a session in an answer of a model, nil if it is no object. All models in it
// have this model's provider. The part of the total that they lack is this model's. Costs below 0 count as 0.
func sessionCostOf(v rawjson.Value, model string) *sessionCost {
	if !v.IsObject() {
		return nil
	}
	provider, _, _ := strings.Cut(model, "/")
	c := &sessionCost{models: map[string]Decimal{}}
	for m := range v.Member("models").EachMember {
		name, _ := m.Key.Bytes()
		name, _, _ = bytes.Cut(name, []byte("[")) // a context's length
		cost := decimalAt(m.Value)
		if cost.isNegative() {
			cost = Decimal{}
		}
		model := provider + "/" + markdown.Line(name, maxModelName)
		c.models[model] = c.models[model].Add(cost)
		c.total = c.total.Add(cost)
		if len(c.models) >= maxParts {
			break
		}
	}
	rest := decimalAt(v.Member("total")).minus(c.total)
	if rest.isPositive() {
		c.models[model] = c.models[model].Add(rest)
		c.total = c.total.Add(rest)
	}
	return c
}

// decimalAt returns v as a Decimal, 0 if v is not a number or overflows float64.
func decimalAt(v rawjson.Value) Decimal { return decimalOf(float64(countOf(v))) }

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

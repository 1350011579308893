package sessioncore

import (
	"cmp"
	"slices"
	"strconv"
	"sync"

	"sessionfs/sessioncore/internal/markdown"
	"sessionfs/sessioncore/internal/rawjson"
)

// What a session cost, as the client counts it: the usage of each assistant message, of the subagents that
// a task tool's result tells of, and of the calls beside the conversation that newer clients record as
// model_usage. Over all entries of the file, whatever branch they are on.

// usageRecord is the usage that an entry tells of, about 110 bytes.
type usageRecord struct {
	entry Entry
	model int32 // its number in usageRecords.models
	usageSum
}

// usageKey is the key of the usageRecords that snapshots share.
type usageKey struct{}

// usageRecords remembers the usages of the entries that were looked at, so that each is read once. The
// snapshots of one index share it: an entry of theirs never changes.
type usageRecords struct {
	mu      sync.Mutex // guards what follows; held while entries are read
	looked  int        // entries looked at
	records []usageRecord
	models  []string // in the order in which they come in the file
	numbers map[string]int32
}

const (
	// taskModel is the name under which the usage of subagents stands: a task's result does not tell which
	// models they used. Those of models have a slash.
	taskModel = "task"
	// otherModel stands for the models beyond maxModels.
	otherModel = "other"
	// maxModels is how many models of a session are told apart; nobody uses more, and a hostile file cannot
	// fill the memory with names.
	maxModels = 1000
	// maxModelName is the longest that a provider's or a model's name is shown, in characters.
	maxModelName = 200
)

// UsageDocument returns usage.json: the totals of the session, by model too, and those of the branch that
// ends in leaf (docs/design.md section 1). Numbers are summed in file order, and in the branch's order, as
// doubles.
func (s *Snapshot) UsageDocument(leaf Entry) (*Document, error) {
	records, models, err := usageRecordsOf(s).of(s)
	if err != nil {
		return nil, err
	}
	var branch []usageRecord
	if leaf != NoEntry {
		for _, e := range s.Path(leaf) {
			if i, ok := slices.BinarySearchFunc(records, e, func(r usageRecord, e Entry) int { return cmp.Compare(r.entry, e) }); ok {
				branch = append(branch, records[i])
			}
		}
	}
	doc := usageJSON{usageSums: sumUsage(records, models), Branch: sumUsage(branch, models)}
	text, err := doc.text()
	if err != nil {
		return nil, err
	}
	return textDocument(s, text), nil
}

func usageRecordsOf(s *Snapshot) *usageRecords {
	return s.Shared(usageKey{}, func() any { return &usageRecords{} }).(*usageRecords)
}

// of returns the records of a snapshot's entries in file order, and the models' names.
func (u *usageRecords) of(s *Snapshot) ([]usageRecord, []string, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if err := u.look(s); err != nil {
		return nil, nil, err
	}
	n, _ := slices.BinarySearchFunc(u.records, Entry(s.Len()), func(r usageRecord, e Entry) int { return cmp.Compare(r.entry, e) })
	return u.records[:n:n], u.models[:len(u.models):len(u.models)], nil
}

// look reads the entries that were not looked at yet.
func (u *usageRecords) look(s *Snapshot) error {
	var entries []Entry
	for e := u.looked; e < s.Len(); e++ {
		if rec := &s.records[e]; rec.kind == TypeUnknown || rec.kind == TypeMessage && rec.role != RoleUser && rec.role != RoleHookMessage {
			entries = append(entries, Entry(e))
		}
	}
	type found struct {
		model string
		sum   usageSum
		ok    bool
	}
	all := make([]found, len(entries))
	err := s.ReadEntries(entries, func() func(int, rawjson.Value) error {
		return func(i int, text rawjson.Value) error {
			f := &all[i]
			f.model, f.sum, f.ok = usageOf(text, &s.records[entries[i]])
			return nil
		}
	})
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].ok {
			u.records = append(u.records, usageRecord{entries[i], u.number(all[i].model), all[i].sum})
		}
	}
	u.looked = max(u.looked, s.Len())
	return nil
}

// number returns the number of a model's name.
func (u *usageRecords) number(model string) int32 {
	if _, ok := u.numbers[model]; !ok && len(u.models) >= maxModels {
		model = otherModel
	}
	n, ok := u.numbers[model]
	if !ok {
		if u.numbers == nil {
			u.numbers = map[string]int32{}
		}
		n = int32(len(u.models))
		u.models = append(u.models, model)
		u.numbers[model] = n
	}
	return n
}

// usageOf returns the usage that an entry tells of, and under which name it counts.
func usageOf(text rawjson.Value, rec *record) (model string, sum usageSum, ok bool) {
	if rec.kind != TypeMessage {
		if !text.Member("type").Is("model_usage") {
			return "", sum, false
		}
		return usageModel(text), sumOf(text.Member("usage")), true
	}
	message := text[rec.msgOff : rec.msgOff+rec.msgSize]
	if rec.role == RoleAssistant {
		sum = sumOf(message.Member("usage"))
		sum.AssistantMessages = 1
		return usageModel(message), sum, true
	}
	var role, tool, details rawjson.Value
	message.EachMember(func(m rawjson.Member) bool {
		switch m.Name() {
		case "role":
			role = m.Value
		case "toolName":
			tool = m.Value
		case "details":
			details = m.Value
		}
		return true
	})
	if usage := details.Member("usage"); usage.IsObject() && tool.Is("task") && (role.Is("toolResult") || role.Is("tool_result")) {
		return taskModel, sumOf(usage), true
	}
	return "", sum, false
}

// usageModel returns the name of the model of a message: provider and model with a slash between them.
func usageModel(message rawjson.Value) string {
	name := func(key string) []byte {
		if text := shownName(message.Member(key)); len(text) > 0 {
			return text
		}
		return []byte("unknown")
	}
	return string(name("provider")) + "/" + string(name("model"))
}

func shownName(v rawjson.Value) []byte {
	text, _ := v.Text()
	return markdown.AppendLine(nil, markdown.AppendVisible(nil, []byte(text[:min(len(text), 4*maxModelName)])), maxModelName)
}

// sumOf reads a usage. What is missing or is no number counts as 0, but for the total of the tokens, which
// old clients did not write: it is the sum of the others then.
func sumOf(usage rawjson.Value) (sum usageSum) {
	total := false
	usage.EachMember(func(m rawjson.Member) bool {
		switch m.Name() {
		case "input":
			sum.Input = countOf(m.Value)
		case "output":
			sum.Output = countOf(m.Value)
		case "cacheRead":
			sum.CacheRead = countOf(m.Value)
		case "cacheWrite":
			sum.CacheWrite = countOf(m.Value)
		case "totalTokens":
			sum.TotalTokens, total = countOf(m.Value), m.Value.IsNumber()
		case "premiumRequests":
			sum.PremiumRequests = countOf(m.Value)
		case "cost":
			sum.Cost = costOf(m.Value)
		}
		return true
	})
	if !total {
		sum.TotalTokens = sum.Input + sum.Output + sum.CacheRead + sum.CacheWrite
	}
	return sum
}

func costOf(cost rawjson.Value) (sum usageCost) {
	cost.EachMember(func(m rawjson.Member) bool {
		switch m.Name() {
		case "input":
			sum.Input = countOf(m.Value)
		case "output":
			sum.Output = countOf(m.Value)
		case "cacheRead":
			sum.CacheRead = countOf(m.Value)
		case "cacheWrite":
			sum.CacheWrite = countOf(m.Value)
		case "total":
			sum.Total = countOf(m.Value)
		}
		return true
	})
	return sum
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

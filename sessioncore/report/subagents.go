package report

import (
	"context"
	"math"
	"path"
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/storage"
)

// This file finds the sessions of subagents, which lie below the directory beside a session's file.

const (
	// maxDepth is how many directories deep sessions of subagents are looked for. Claude Code's
	// workflows have three.
	maxDepth = 8
	// maxFound bounds how many names are looked at for one session, as its directory has all long
	// outputs of tools too.
	maxFound = 100_000
)

// Subagents are the sessions of a session's subagents.
type Subagents struct {
	of    *listing.Info
	found []*listing.Info
}

// SubagentsOf finds the sessions of the subagents of a session in a file of that name.
func SubagentsOf(files storage.Files, name string) Subagents {
	info := listing.NewInfo(name, storage.Stat{}, "")
	return Subagents{info, subagentsOf(files, info)}
}

// subagentsOf returns the sessions of a session's subagents. Files of that name that are no session
// cost nothing.
func subagentsOf(files storage.Files, info *listing.Info) (found []*listing.Info) {
	names := 0
	var walk func(dir string, depth int)
	walk = func(dir string, depth int) {
		var below []string
		_ = files.List(dir, nil, func(item storage.Item) bool {
			names++
			switch {
			case item.Kind == storage.KindDir && depth < maxDepth:
				below = append(below, item.Name)
			case item.Kind == storage.KindFile && strings.HasSuffix(item.Name, sessioncore.FileEnding):
				st, err := item.State()
				if err == nil {
					found = append(found, listing.NewInfo(path.Join(dir, item.Name), st, info.CWD))
				}
			}
			return names < maxFound
		})
		for _, name := range below {
			walk(path.Join(dir, name), depth+1)
		}
	}
	walk(info.DirName(), 1)
	return found
}

// Token returns the state of all of them together, the zero Token if there are none.
func (s Subagents) Token() (t storage.Token) {
	for _, sub := range s.found {
		token := sub.Stat.Token
		token.Size = 0 // which is known only once the file of another agent was read
		t = t.With(token)
	}
	return t
}

// Sum returns the part of their costs that the session lacks.
func (s Subagents) Sum(ctx context.Context, store *sessioncore.Store, prices Prices) (sum Sum, err error) {
	if len(s.found) == 0 {
		return sum, nil
	}
	s.of.Stat, err = store.Storage().Stat(s.of.Name())
	if err != nil {
		return sum, err
	}
	all := append([]*listing.Info{s.of}, s.found...)
	costs := NewCosts(store, prices)
	err = costs.addUp(ctx, all, nil, func(r Row) error {
		if r.Session != s.of {
			sum.Add(r.Sum)
		}
		return nil
	})
	return sum, err
}

// withSubagents returns sessions and their subagents' sessions, the oldest first, and the callers of the latter.
func (c *Costs) withSubagents(sessions []*listing.Info) (all []*listing.Info, callers map[*listing.Info]*listing.Info) {
	files := c.store.Storage()
	callers = map[*listing.Info]*listing.Info{}
	listed := make(map[string]bool, len(sessions))
	for _, info := range sessions {
		all = append(all, info)
		listed[info.Name()] = true
	}
	subdirs := map[string]map[string]bool{} // the directories in a directory, by its name and theirs
	for _, info := range sessions {
		dir, base := path.Split(info.DirName())
		if subdirs[dir] == nil {
			subdirs[dir] = subdirsOf(files, strings.TrimSuffix(dir, "/"))
		}
		if !subdirs[dir][base] {
			continue
		}
		for _, sub := range subagentsOf(files, info) {
			if !listed[sub.Name()] {
				all = append(all, sub)
				callers[sub] = info
				listed[sub.Name()] = true
			}
		}
	}
	return oldestFirst(all), callers
}

// subdirsOf returns the names of the directories in a directory, as far as it can be read.
func subdirsOf(files storage.Files, dir string) map[string]bool {
	subdirs := map[string]bool{}
	_ = files.List(dir, nil, func(item storage.Item) bool {
		subdirs[item.Name] = item.Kind == storage.KindDir
		return true
	})
	return subdirs
}

// cover is a span of time with the costs of a session's subagents in the session itself. It is comparable.
type cover struct {
	from, to int64 // in ms since the epoch, both included
	tokens   bool  // the session has their tokens too, and not only their cost
}

// coversOf returns the spans that a session's records cover: from the call of a tool to its result,
// if that reports a usage; and, where the client recorded the cost of the whole session, all time
// up to the next answer.
func coversOf(s *sessioncore.Snapshot, records []usageRecord) (covers []cover) {
	for i := range records {
		r := &records[i]
		at := s.Time(r.entry).UnixMilli()
		if r.session != nil {
			next := int64(math.MaxInt64)
			if i+1 < len(records) {
				next = s.Time(records[i+1].entry).UnixMilli()
			}
			covers = append(covers, coverUntil(at, next))
		}
		if isResult(s, r.entry) {
			call := r.entry
			answer := AnswerAbove(s, call)
			if answer != sessioncore.NoEntry {
				call = answer
			}
			covers = append(covers, cover{s.Time(call).UnixMilli(), at, true})
		}
	}
	return covers
}

// coverUntil returns the cover of an answer at a time with the cost of the whole session so far. next is the time
// of the next usage.
func coverUntil(at, next int64) cover {
	to := next
	if next < math.MaxInt64 {
		to = max(at, next-1)
	}
	return cover{from: math.MinInt64, to: to}
}

// maxCalls bounds how many results of the calls of one answer are passed on the way to it.
const maxCalls = 1000

// AnswerAbove returns the nearest answer of the model above an entry, with the calls that a tool's result
// answers; NoEntry if there is none near.
func AnswerAbove(s *sessioncore.Snapshot, e sessioncore.Entry) sessioncore.Entry {
	for range maxCalls {
		e = s.Parent(e)
		if e == sessioncore.NoEntry || isAnswer(s, e) {
			return e
		}
	}
	return sessioncore.NoEntry
}

// beyond returns the rest of a cost in a subagent's session that covers of the calling sessions
// leave over, and whether there is any.
func (r *usageRecord) beyond(covers []cover) (left Sum, ok bool) {
	left = r.Sum
	for _, of := range covers {
		if r.time < of.from || r.time > of.to {
			continue
		}
		if of.tokens {
			return Sum{}, false
		}
		left.Cost = usageCost{known: true}
		left.Listed = Decimal{}
		left.Unpriced = 0
	}
	return left, true
}

// covers are the covers that sessions have of their subagents, by the directory of the subagents.
type covers map[string][]cover

// above returns the covers of the sessions that called a subagent.
func (c covers) above(info *listing.Info) (found []cover) {
	for dir := path.Dir(info.Name()); dir != "." && dir != "/"; dir = path.Dir(dir) {
		found = append(found, c[dir]...)
	}
	return found
}

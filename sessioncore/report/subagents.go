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

// subagentsOf returns the sessions of a session's subagents, with the session's working directory, as
// far as the directories can be read. Files with the name of a session that are none are among them:
// they have no costs.
func subagentsOf(files storage.Files, info *listing.Info) []*listing.Info {
	w := subagentWalk{files: files, cwd: info.CWD}
	w.list(info.DirName(), 1)
	return w.found
}

// subagentWalk looks for the sessions of subagents in a tree of directories.
type subagentWalk struct {
	files storage.Files
	cwd   string // of the sessions
	names int    // the number of names that were looked at
	found []*listing.Info
}

// list adds the sessions in a directory, and in those below it up to maxDepth. depth counts from 1. A
// directory that cannot be read has none.
func (w *subagentWalk) list(dir string, depth int) {
	var below []string
	_ = w.files.List(dir, nil, func(item storage.Item) bool {
		w.names++
		isSession := item.Kind == storage.KindFile && strings.HasSuffix(item.Name, sessioncore.FileEnding)
		switch {
		case item.Kind == storage.KindDir && depth < maxDepth:
			below = append(below, item.Name)
		case isSession:
			w.add(path.Join(dir, item.Name), item)
		}
		return w.names < maxFound
	})
	for _, name := range below {
		w.list(path.Join(dir, name), depth+1)
	}
}

// add adds a session file, unless it is gone meanwhile.
func (w *subagentWalk) add(name string, item storage.Item) {
	st, err := item.State()
	if err == nil {
		w.found = append(w.found, listing.NewInfo(name, st, w.cwd))
	}
}

// Token returns the state of all their files together, the zero Token if there are none.
func (s Subagents) Token() (all storage.Token) {
	for _, sub := range s.found {
		token := sub.Stat.Token
		token.Size = 0 // which is known only once the file of another agent was read
		all = all.With(token)
	}
	return all
}

// Sum returns the part of their costs that the calling session does not have itself: its own records are
// counted first, and left out. Sessions that cannot be read have no costs. The error is one of the state
// of the calling session, or of ctx.
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

// withSubagents returns sessions and their subagents' sessions, the oldest first, and the callers of the
// latter. A subagent that is among sessions itself has no caller there.
func (c *Costs) withSubagents(sessions []*listing.Info) (all []*listing.Info, callers map[*listing.Info]*listing.Info) {
	files := c.store.Storage()
	callers = map[*listing.Info]*listing.Info{}
	listed := make(map[string]bool, len(sessions))
	for _, info := range sessions {
		all = append(all, info)
		listed[info.Name()] = true
	}
	// subdirs has the directories in a directory, by its name and theirs: most sessions have none beside
	// them, and one listing shows that for all sessions of a directory.
	subdirs := map[string]map[string]bool{}
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

// subdirsOf returns, by name, whether an item of a directory is a directory, as far as it can be read. It
// is not nil.
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

// coverUntil returns the cover of an answer at a time with the cost of the whole session so far, which begins
// before all others. next is the time of the next usage, which the cover lacks, and math.MaxInt64 for none.
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

// beyond returns the part of a usage in a subagent's session that the covers of its callers leave over,
// and whether there is any: all outside of them, the tokens where a cover has only the cost. The record
// stays as it is.
func (r *usageRecord) beyond(covers []cover) (left Sum, isLeft bool) {
	left = r.Sum
	for _, covered := range covers {
		if r.time < covered.from || r.time > covered.to {
			continue
		}
		if covered.tokens {
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

// above returns the covers of the sessions that called a subagent: its file lies below their directories.
// It is nil for a session that no other one called.
func (c covers) above(info *listing.Info) (found []cover) {
	for dir := path.Dir(info.Name()); dir != "." && dir != "/"; dir = path.Dir(dir) {
		found = append(found, c[dir]...)
	}
	return found
}

package costs

import (
	"context"
	"hash/maphash"
	"path"
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/report"
	"sessionfs/sessioncore/storage"
)

// This file finds the sessions of subagents, which lie below the directory beside a session's file, and counts them with it.

const (
	// maxDepth is how many directories deep sessions of subagents are looked for. Claude Code's workflows have three.
	maxDepth = 8
	// maxFound bounds how many names are looked at for one session, as its directory has all long outputs of tools too.
	maxFound = 100_000
)

// subagentsOf returns the sessions of a session's subagents. Files of that name that are no session cost nothing.
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
				if st, err := item.State(); err == nil {
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

// withSubagents returns sessions and those of their subagents, and whose these are.
func (c *Costs) withSubagents(sessions []*listing.Info) (all []*listing.Info, of map[*listing.Info]*listing.Info) {
	files, of := c.store.Storage(), map[*listing.Info]*listing.Info{}
	listed := make(map[string]bool, len(sessions))
	for _, info := range sessions {
		all, listed[info.Name()] = append(all, info), true
	}
	with := map[string]map[string]bool{} // by directory: the names of the directories in it
	for _, info := range sessions {
		dir, base := path.Split(info.DirName())
		if with[dir] == nil {
			with[dir] = map[string]bool{}
			_ = files.List(strings.TrimSuffix(dir, "/"), nil, func(item storage.Item) bool {
				with[dir][item.Name] = item.Kind == storage.KindDir
				return true
			})
		}
		if !with[dir][base] {
			continue
		}
		for _, sub := range subagentsOf(files, info) {
			if !listed[sub.Name()] {
				all, of[sub], listed[sub.Name()] = append(all, sub), info, true
			}
		}
	}
	return all, of
}

// covers are the covers that sessions have of their subagents, by the directory of the subagents.
type covers map[string][]report.Cover

// above returns the covers of the sessions that called a subagent.
func (c covers) above(info *listing.Info) (found []report.Cover) {
	for dir := path.Dir(info.Name()); dir != "." && dir != "/"; dir = path.Dir(dir) {
		found = append(found, c[dir]...)
	}
	return found
}

// keyOf returns a hash of covers.
func keyOf(covers []report.Cover) (key uint64) {
	for _, of := range covers {
		key += maphash.Comparable(coverSeed, of)
	}
	return key
}

var coverSeed = maphash.MakeSeed()

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

// Token returns the state of all of them together, the zero Token if there are none.
func (s Subagents) Token() (t storage.Token) {
	for _, sub := range s.found {
		t = t.With(stateOf(sub))
	}
	return t
}

// Sum returns the part of their costs that the session lacks.
func (s Subagents) Sum(ctx context.Context, store *sessioncore.Store, prices report.Prices) (sum report.Sum, err error) {
	if len(s.found) == 0 {
		return sum, nil
	}
	if s.of.Stat, err = store.Storage().Stat(s.of.Name()); err != nil {
		return sum, err
	}
	_, err = New(store, prices).addUp(ctx, append([]*listing.Info{s.of}, s.found...), &sums{}, func(info *listing.Info, r *row) error {
		if info != s.of {
			sum.Add(&r.sum)
		}
		return nil
	})
	return sum, err
}

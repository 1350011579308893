package costs

import (
	"maps"
	"slices"

	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/report"
)

// Sum is a sum of usages.
type Sum = report.Sum

// Groups are sums of rows by names. The zero value has none.
type Groups struct{ groups map[string]*Group }

// Group is one of them.
type Group struct {
	Name string
	Sum
	sessions map[*listing.Info]bool
}

// Sessions returns how many sessions have a part in it.
func (g *Group) Sessions() int { return len(g.sessions) }

// Add adds a row to the group of a name.
func (g *Groups) Add(name string, r *Row) {
	if g.groups == nil {
		g.groups = map[string]*Group{}
	}
	of := g.groups[name]
	if of == nil {
		of = &Group{Name: name, sessions: map[*listing.Info]bool{}}
		g.groups[name] = of
	}
	of.Sum.Add(r.Sum)
	of.sessions[r.Session] = true
}

// All returns the groups, in no order.
func (g *Groups) All() []*Group { return slices.Collect(maps.Values(g.groups)) }

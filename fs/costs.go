package fs

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/report"
)

// Count says which costs are added up. The zero value counts all by days.
type Count struct {
	Tools       bool      // calls of tools: Model is the tool, and AssistantMessages are its calls
	Hours       bool      // by hours
	From, Until time.Time // answers at or after From and before Until; zero for any
	Written     time.Time // only of sessions whose files were modified at or after it; zero for all
}

// Costs calls each with the rows that usage.jsonl sums up by local days, and the agent of their
// sessions.
func (u *Unmounted) Costs(ctx context.Context, c Count, each func(r report.Row, agent string)) error {
	t := u.tree
	var sessions []*listing.Info
	var err error
	if c.Written.IsZero() {
		sessions, err = u.Sessions(ctx)
	} else {
		sessions, err = t.view.Listing.ModifiedSince(ctx, c.Written.UnixNano())
	}
	if err != nil {
		return err
	}
	all := report.NewCosts(t.billed(), t.view.Prices)
	if c.Tools {
		all = report.NewCalls(t.store)
	}
	all.During(c.From, c.Until, c.Hours)
	return all.Rows(ctx, sessions, func(r report.Row) { each(r, u.AgentOf(r.Session)) })
}

// AgentOf returns the agent of a session.
func (u *Unmounted) AgentOf(info *listing.Info) string {
	return cmp.Or(info.Agent(), u.tree.agentOf(info.Name()))
}

// StateOf returns a text that changes when a session or one of its subagents' sessions does.
func (u *Unmounted) StateOf(info *listing.Info) string {
	token := info.Stat.Token
	subagents := report.SubagentsOf(u.tree.store.Storage(), info.Name()).Token()
	return fmt.Sprint(token.Inode, token.Modified, token.Changed, info.Size, subagents.Inode, subagents.Modified)
}

// Bill is the cost of a session and of its subagents' sessions.
type Bill struct {
	report.Sum
	Agent  string   // of the session
	Models []string // the one with the most tokens first
}

// Spent returns the session of a directory in the mount, without links, and its bill. Callers must
// release it.
func (u *Unmounted) Spent(ctx context.Context, dir string) (snap *sessioncore.Snapshot, b Bill, err error) {
	snap, store, name, err := u.acquire(ctx, dir)
	if err != nil {
		return nil, b, err
	}
	if b.Agent = u.tree.agentOf(name); u.tree.parts != nil {
		b.Agent, _, _ = strings.Cut(name, "/")
	}
	prices := u.tree.view.Prices
	subagents, err := report.SubagentsOf(store.Storage(), name).Sum(ctx, store, prices)
	if err == nil {
		b.Sum, b.Models, err = report.Spent(ctx, snap, prices, subagents)
	}
	if err != nil {
		snap.Release()
	}
	return snap, b, err
}

// Prices returns the name of the list prices for answers without a recorded cost, "" for none.
func (u *Unmounted) Prices() string { return u.tree.view.Prices.Source() }

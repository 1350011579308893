package fs

import (
	"cmp"
	"context"

	"sessionfs/sessioncore/report"
)

// Costs calls each with all that the lines of usage.jsonl are sums of, and the agent whose session it is. With tools it is how
// often each tool was called: the tool is the model, and AssistantMessages are its calls.
func (u *Unmounted) Costs(ctx context.Context, tools bool, each func(r report.Row, agent string)) error {
	t := u.tree
	sessions, err := t.view.Listing.Sessions(ctx)
	if err != nil {
		return err
	}
	all := report.NewCosts(t.billed(), t.view.Prices)
	if tools {
		all = report.NewCalls(t.store)
	}
	return all.Rows(ctx, sessions.All(), func(r report.Row) { each(r, cmp.Or(r.Session.Agent(), t.agentOf(r.Session.Name()))) })
}

// Prices names the list prices that costs are made of where no client recorded any, "" for none.
func (u *Unmounted) Prices() string { return u.tree.view.Prices.Source() }

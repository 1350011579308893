package fs

import (
	"cmp"
	"context"

	"sessionfs/sessioncore/costs"
)

// Costs calls each with all that the lines of usage.jsonl are sums of, and the agent whose session it is. With tools it is how
// often each tool was called: the tool is the model, and AssistantMessages are its calls.
func (u *Unmounted) Costs(ctx context.Context, tools bool, each func(r costs.Row, agent string)) error {
	t := u.tree
	sessions, err := t.view.Listing.Sessions(ctx)
	if err != nil {
		return err
	}
	all := costs.New(t.billed(), t.view.Prices)
	if tools {
		all = costs.OfTools(t.store)
	}
	return all.Rows(ctx, sessions.All(), func(r costs.Row) { each(r, cmp.Or(r.Session.Agent(), t.agentOf(r.Session.Name()))) })
}

// Prices names the list prices that costs are made of where no client recorded any, "" for none.
func (u *Unmounted) Prices() string { return u.tree.view.Prices.Source() }

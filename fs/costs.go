package fs

import (
	"cmp"
	"context"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/costs"
	"sessionfs/sessioncore/program"
	"sessionfs/sessioncore/storage"
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

// newBill returns the store of a bill over files, which have the same sessions as t.store without their texts.
func (t *tree) newBill(files storage.Files, memory *budget.Budget, of func(file string) program.Program) *sessioncore.Store {
	bill := sessioncore.NewStore(files)
	bill.Keep(keepArchived)
	bill.SetProgram(of)
	t.closers = append(t.closers, bill.Close)
	memory.OnFull(bill.EvictIdle)
	return bill
}

// billed returns the store of which a bill is made.
func (t *tree) billed() *sessioncore.Store { return cmp.Or(t.bill, t.store) }

package fs

import (
	"context"

	"sessionfs/sessioncore/costs"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/program"
)

// Costs calls each with all that the lines of usage.jsonl are sums of, and the agent whose session it is. With tools it is how
// often each tool was called: the tool is the model, and AssistantMessages are its calls.
func (u *Unmounted) Costs(ctx context.Context, tools bool, each func(r costs.Row, agent string)) error {
	t := u.tree
	sessions, err := t.view.Listing.Sessions(ctx)
	if err != nil {
		return err
	}
	all := costs.New(t.store, t.view.Prices)
	if tools {
		all = costs.OfTools(t.store)
	}
	hold := t.view.Memory.Hold()
	defer hold.Close()
	return all.Rows(ctx, sessions.All(), &hold, func(r costs.Row) { each(r, t.agentOf(r.Session)) })
}

// agentOf returns the name of the agent whose session it is.
func (t *tree) agentOf(info *listing.Info) string {
	switch p := t.store.Program(info.Name); {
	case info.Agent() != "":
		return info.Agent()
	case t.view.Foreign:
		return string(AgentOf(t.source.Path()))
	case p == program.Pi || p == program.LikelyPi:
		return "pi"
	}
	return "omp"
}

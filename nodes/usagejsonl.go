package nodes

import (
	"context"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/costs"
)

// NewCostsFile returns usage.jsonl: what all sessions cost, by day, working directory and model (docs/design.md section
// 5). Both its size and its content take reading every session that changed.
func NewCostsFile(view *View, costs *costs.Costs) *ContentFile {
	render := func(ctx context.Context, hold *budget.Hold) (content, error) {
		sessions, err := view.Listing.Sessions(ctx)
		if err != nil {
			return content{}, err
		}
		text, err := costs.Lines(ctx, sessions.All(), hold)
		if err != nil {
			return content{}, err
		}
		c := textContent(text, sessions.Stat())
		c.private = true
		return c, hold.Resize(c.size)
	}
	return &ContentFile{node: node{view: view}, render: render}
}

package nodes

import (
	"bytes"
	"context"
	"sync/atomic"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/history"
)

// newPromptsFile returns history/prompts.jsonl, or history/search/<query> where match is the query: prompts as JSON
// lines, newest first. The content is held by the handle; the node keeps only its size.
func newPromptsFile(view *View, prompts *history.History, match string) *ContentFile {
	var last atomic.Pointer[history.Measure] // as long as the database is in the same state
	shown := func(m history.Measure, text []byte) content {
		if m.Settled {
			last.Store(&m)
		}
		return content{text: bytes.NewReader(text), size: m.Size, stat: m.State.Stat(), private: true}
	}
	render := func(ctx context.Context, hold *budget.Hold) (content, error) {
		var room int64
		if m := last.Load(); m != nil {
			room = m.Size
		}
		text, m, err := prompts.Render(ctx, match, room, hold)
		if err != nil {
			return content{}, err
		}
		return shown(m, text), nil
	}
	measure := func(ctx context.Context, hold *budget.Hold) (content, error) {
		state, err := prompts.State()
		if err != nil {
			return content{}, err
		}
		m := last.Load()
		if m == nil || m.State != state {
			now, err := prompts.Measure(ctx, match, hold)
			if err != nil {
				return content{}, err
			}
			m = &now
		}
		return shown(*m, nil), nil
	}
	return &ContentFile{node: node{view: view}, render: render, measure: measure}
}

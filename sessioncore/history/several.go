package history

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/storage"
)

// closeAfter closes hold if *err is an error. A deferred call so closes it on each return.
func closeAfter(err *error, hold *budget.Hold) {
	if *err != nil {
		hold.Close()
	}
}

// AgentHistory is the history of one of several agents.
type AgentHistory struct {
	Agent   string
	History History
}

// Several merges the histories of several agents: their lines by time, each with a member agent.
type Several []AgentHistory

// seed is the seed of State.parts, which only this process compares.
var seed = maphash.MakeSeed()

// State returns a State of all histories, missing ones included, with the latest times. The error wraps
// fs.ErrNotExist if all are missing.
func (h Several) State() (State, error) {
	var all State
	var missing error
	for _, p := range h {
		one, err := p.History.State()
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = err
			one = State{}
		case err != nil:
			return State{}, err
		case all.database == storage.Stat{}: // the first one that exists
			all.database = one.Stat()
		default:
			st := one.Stat()
			all.database.Modified = max(all.database.Modified, st.Modified)
			all.database.Changed = max(all.database.Changed, st.Changed)
		}
		all.parts = maphash.Comparable(seed, [2]any{all.parts, one})
	}
	if all.database == (storage.Stat{}) {
		if missing == nil {
			missing = fs.ErrNotExist
		}
		return State{}, missing
	}
	return all, nil
}

// Render implements History. A query that some of them cannot parse is no error if another one can.
func (h Several) Render(ctx context.Context, match string, hold *budget.Hold) (r Rendering, err error) {
	defer closeAfter(&err, hold)
	out := &PromptLines{Hold: hold}
	state, err := h.State()
	if err != nil {
		return r, err
	}
	texts := make([][]byte, len(h))
	isSettled := true
	hasAnswer := false
	var refused error
	for i, p := range h {
		partHold := hold.Another()
		defer partHold.Close() // after the merge, which reads all texts
		part, err := p.History.Render(ctx, match, &partHold)
		switch {
		case errors.Is(err, ErrQuery):
			refused = err
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return r, err
		case err == nil:
			hasAnswer = true
			texts[i] = part.Text
			if !part.Settled {
				isSettled = false
			}
		}
	}
	if !hasAnswer && refused != nil {
		return r, refused
	}
	err = h.merge(texts, out)
	if err != nil {
		return r, err
	}
	now, err := h.State() // a history may have changed while another one was read
	rendering := Rendering{
		Text:    out.Bytes(),
		State:   state,
		Settled: isSettled && now == state,
	}
	return rendering, err
}

// merge writes the lines of all agents' texts, each of them the newest first, in the order of their times,
// with the agent of each.
func (h Several) merge(texts [][]byte, out *PromptLines) error {
	for {
		newest := newestText(texts)
		if newest < 0 {
			return nil
		}
		line, rest, _ := bytes.Cut(texts[newest], []byte("\n"))
		texts[newest] = rest
		out.line = fmt.Appendf(out.line[:0], `{"agent":%q,%s`+"\n", h[newest].Agent, line[1:])
		err := out.end()
		if err != nil {
			return err
		}
	}
}

// newestText returns the index of the text with the newest first line, -1 if all are empty.
func newestText(texts [][]byte) int {
	newest := -1
	last := ""
	for i, text := range texts {
		if len(text) == 0 {
			continue
		}
		at := timeOf(text)
		if newest < 0 || at > last {
			newest = i
			last = at
		}
	}
	return newest
}

// timeOf returns the first line's time, or "~", which sorts as newest, for another form.
func timeOf(text []byte) string {
	var v struct {
		At any `json:"created_at"`
	}
	first, _, _ := bytes.Cut(text, []byte("\n"))
	_ = json.Unmarshal(first, &v)
	at, isText := v.At.(string)
	if !isText {
		return "~"
	}
	return at
}

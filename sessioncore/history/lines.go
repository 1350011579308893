package history

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"slices"
	"strings"
	"time"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/storage"
)

// LinesName is the file of prompts of Claude Code and Codex (docs/format.md, Claude Code; Codex).
const LinesName = "history.jsonl"

// Lines returns the history of Claude Code or Codex in files, which need not exist.
func Lines(files storage.Files) Converted {
	names := func() []string { return []string{LinesName} }
	unchanged := func(dst []byte, _ string, text []byte) []byte { return append(dst, text...) }
	return Converted{Files: files, Names: names, Append: unchanged, subject: LinesName + " has"}
}

// closeAfter closes hold after an error.
func closeAfter(err *error, hold *budget.Hold) {
	if *err != nil {
		hold.Close()
	}
}

// prompt is a line of that file, with the keys of either client.
type prompt struct {
	Display   *string `json:"display"`
	Timestamp float64 `json:"timestamp"` // in ms
	Project   *string `json:"project"`
	SessionID *string `json:"sessionId"`

	Text    *string `json:"text"`
	Seconds float64 `json:"ts"`
	Session *string `json:"session_id"`

	Untimed bool `json:"untimed"` // of Converted: its agent keeps no times
}

// promptOf parses a line with the keys of either client.
func promptOf(line []byte) (p prompt, ok bool) {
	if json.Unmarshal(line, &p) != nil {
		return p, false
	}
	p.Display, p.SessionID = cmp.Or(p.Display, p.Text), cmp.Or(p.SessionID, p.Session)
	return p, p.Display != nil
}

// at returns the prompt's time in s since the epoch.
func (p *prompt) at() int64 {
	if p.Timestamp != 0 {
		return int64(p.Timestamp / 1000)
	}
	return int64(p.Seconds)
}

// promptLine is a line with a prompt.
type promptLine struct {
	at   int64 // in s since the epoch
	line int
	text []byte
}

// render writes the prompts in text, read at a time, that have all words of match, newest
// first. It skips lines that are no prompts, as the last one may be half written.
func (l *lines) render(ctx context.Context, match string, text []byte, state State, at time.Time) (Rendering, error) {
	words := wordsOf(match)
	if match != "" && len(words) == 0 {
		return Rendering{}, fmt.Errorf("%w: %q", ErrQuery, match)
	}
	var found []promptLine
	number := 0
	for line := range bytes.Lines(text) {
		number++
		if p, ok := promptOf(line); ok && containsAll([]byte(strings.ToLower(*p.Display)), words) {
			found = append(found, promptLine{p.at(), number, line})
		}
		if ctx.Err() != nil {
			return Rendering{}, ctx.Err()
		}
	}
	slices.SortFunc(found, func(a, b promptLine) int {
		return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(b.line, a.line))
	})
	for _, s := range found {
		p, _ := promptOf(s.text)
		v := line{ID: s.line, Prompt: *p.Display, Cwd: p.Project}
		if !p.Untimed {
			v.CreatedAt = created(s.at)
		}
		if p.SessionID != nil {
			id := any(*p.SessionID)
			v.SessionID = &id
		}
		if err := l.put(&v); err != nil {
			return Rendering{}, err
		}
	}
	return Rendering{l.text.Bytes(), state, state.Stat().Token.Settling(at) == 0}, nil
}

// Part is the history of one of several agents.
type Part struct {
	Agent   string
	History History
}

// Several merges the histories of several agents: their lines by time, each with a member agent.
type Several []Part

var seed = maphash.MakeSeed()

// State returns a State of all histories, missing ones included, with the latest times.
func (h Several) State() (State, error) {
	var all State
	var missing error
	for _, p := range h {
		s, err := p.History.State()
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing, s = err, State{}
		case err != nil:
			return State{}, err
		case all.database == storage.Stat{}:
			all.database = s.Stat()
		default:
			st := s.Stat()
			all.database.Modified = max(all.database.Modified, st.Modified)
			all.database.Changed = max(all.database.Changed, st.Changed)
		}
		all.parts = maphash.Comparable(seed, [2]any{all.parts, s})
	}
	if all.database == (storage.Stat{}) {
		return State{}, cmp.Or(missing, fs.ErrNotExist)
	}
	return all, nil
}

// Render implements History. A query that some of them cannot parse is no error if another one can.
func (h Several) Render(ctx context.Context, match string, hold *budget.Hold) (r Rendering, err error) {
	defer closeAfter(&err, hold)
	out := &lines{hold: hold}
	state, err := h.State()
	if err != nil {
		return r, err
	}
	texts := make([][]byte, len(h))
	settled, answered := true, false
	var refused error
	for i, p := range h {
		hold := hold.Another()
		defer hold.Close()
		part, err := p.History.Render(ctx, match, &hold)
		switch {
		case errors.Is(err, ErrQuery):
			refused = err
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return r, err
		case err == nil:
			texts[i], settled, answered = part.Text, settled && part.Settled, true
		}
	}
	if !answered && refused != nil {
		return r, refused
	}
	for {
		newest, last := -1, ""
		for i := range texts {
			if at := timeOf(texts[i]); len(texts[i]) > 0 && (newest < 0 || at > last) {
				newest, last = i, at
			}
		}
		if newest < 0 {
			break
		}
		line, rest, _ := bytes.Cut(texts[newest], []byte("\n"))
		texts[newest] = rest
		out.line.Reset()
		fmt.Fprintf(&out.line, `{"agent":%q,%s`+"\n", h[newest].Agent, line[1:])
		if err := out.end(); err != nil {
			return r, err
		}
	}
	now, err := h.State()
	return Rendering{out.text.Bytes(), state, settled && now == state}, err
}

// timeOf returns the first line's time, or "~", which sorts as newest, for another form.
func timeOf(text []byte) string {
	var v struct {
		At any `json:"created_at"`
	}
	first, _, _ := bytes.Cut(text, []byte("\n"))
	_ = json.Unmarshal(first, &v)
	if at, ok := v.At.(string); ok {
		return at
	}
	return "~"
}

package history

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/storage"
)

// maxFileBytes bounds the size of the files together. That is some 100,000 prompts.
const maxFileBytes = 64 << 20

// Prompt is a text that a person typed, in the files of an agent.
type Prompt struct {
	Text         string
	At           int64   // in s since the epoch
	Untimed      bool    // the agent keeps no times
	Cwd, Session *string // nil if they are not known

	id int // the number of its line or, of the prompts in several files, its own
}

// Files is a prompt history in files, which need not exist.
type Files struct {
	storage.Files
	// Names returns the names of the files, in order.
	Names func() []string
	// Parse returns the prompts in the text of a file, of one that is half written those that can be
	// read.
	Parse func(name string, text []byte) []Prompt
}

// LinesName is the file of prompts of Claude Code and Codex (docs/format-claude.md and docs/format-codex.md).
const LinesName = "history.jsonl"

// Lines returns the history of Claude Code or Codex in files.
func Lines(files storage.Files) Files {
	return Files{
		Files: files,
		Names: func() []string { return []string{LinesName} },
		Parse: parseLines,
	}
}

// parseLines parses lines with the keys of either client. It leaves out lines that are not JSON or have no
// text.
func parseLines(_ string, text []byte) (all []Prompt) {
	number := 0
	for line := range bytes.Lines(text) {
		number++
		var v struct {
			Display   *string `json:"display"`
			Timestamp float64 `json:"timestamp"` // in ms
			Project   *string `json:"project"`
			SessionID *string `json:"sessionId"`

			Text    *string `json:"text"`
			Seconds float64 `json:"ts"`
			Session *string `json:"session_id"`
		}
		err := json.Unmarshal(line, &v)
		display := v.Display
		if display == nil {
			display = v.Text
		}
		if err != nil || display == nil {
			continue
		}
		at := int64(v.Seconds)
		if v.Timestamp != 0 {
			at = int64(v.Timestamp / 1000)
		}
		session := v.SessionID
		if session == nil {
			session = v.Session
		}
		all = append(all, Prompt{
			Text:    *display,
			At:      at,
			Cwd:     v.Project,
			Session: session,
			id:      number,
		})
	}
	return all
}

// State implements History. The state of several files has the sum of their sizes, the latest times, and a
// hash of the inodes.
func (h Files) State() (all State, err error) {
	isFirst := true
	for _, name := range h.Names() {
		one, err := StateOf(h.Files, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return State{}, err
		}
		if isFirst {
			all = one
			isFirst = false
			continue
		}
		st := &all.database
		st.Size += one.database.Size
		st.Inode = st.Inode*31 + one.database.Inode
		st.Modified = max(st.Modified, one.database.Modified)
		st.Changed = max(st.Changed, one.database.Changed)
	}
	if isFirst {
		return State{}, fs.ErrNotExist
	}
	return all, nil
}

// Render implements History.
func (h Files) Render(ctx context.Context, match string, hold *budget.Hold) (r Rendering, err error) {
	defer closeAfter(&err, hold)
	at := time.Now()
	state, err := h.State()
	if err != nil {
		return r, err
	}
	size := state.database.Size
	if size > maxFileBytes {
		return r, fmt.Errorf("%w: the prompts have %d MiB, and may have %d", ErrTooBig, size>>20, maxFileBytes>>20)
	}
	words := WordsOf(match)
	if match != "" && len(words) == 0 {
		return r, fmt.Errorf("%w: %q", ErrQuery, match)
	}
	room := hold.Another()
	defer room.Close()
	err = room.Resize(3 * size) // the text, its prompts, and one in lower case at a time
	if err != nil {
		return r, err
	}
	found, err := h.find(ctx, words)
	if err != nil {
		return r, err
	}
	out := &PromptLines{Hold: hold}
	for i := range found {
		err := out.Put(found[i].row())
		if err != nil {
			return r, err
		}
	}
	rendering := Rendering{
		Text:    out.Bytes(),
		State:   state,
		Settled: state.Stat().Token.Settling(at) == 0,
	}
	return rendering, nil
}

// row returns the prompt as a row of the client's table.
func (p *Prompt) row() *PromptRow {
	row := &PromptRow{ID: p.id, Prompt: p.Text, Cwd: p.Cwd}
	if !p.Untimed {
		row.CreatedAt = Created(p.At)
	}
	if p.Session != nil {
		id := any(*p.Session)
		row.SessionID = &id
	}
	return row
}

// find returns the prompts that have all words, the newest first, and numbers those without a line. A file
// that is missing or no regular one has none.
func (h Files) find(ctx context.Context, words []string) (found []Prompt, err error) {
	number := 0
	for _, name := range h.Names() {
		text, err := storage.ReadFile(h.Files, name, maxFileBytes)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, storage.ErrNotRegular) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, p := range h.Parse(name, text) {
			number++
			if p.id == 0 {
				p.id = number
			}
			if HasWords([]byte(strings.ToLower(p.Text)), words) {
				found = append(found, p)
			}
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
		}
	}
	slices.SortFunc(found, func(a, b Prompt) int {
		byTime := cmp.Compare(b.At, a.At)
		if byTime != 0 {
			return byTime
		}
		return cmp.Compare(b.id, a.id)
	})
	return found, nil
}

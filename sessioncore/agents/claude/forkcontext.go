package claude

import (
	"bytes"
	"path"
	"slices"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
)

// This file begins the session of a subagent that continues its parent's talk (docs/format.md,
// Claude Code): its file names the last record of that talk, and has none of it.

const (
	// maxContext bounds the bytes of a parent's file that are read for a subagent.
	maxContext = 64 << 20
	// maxContextReadings bounds the conversions of that by converters that restart.
	maxContextReadings = 4
)

// forkContext is the record of a parent's file that a subagent continues.
type forkContext struct{ session, last string }

// setFork handles a record of type fork-context-ref.
func (c *converter) setFork(r *record) {
	c.fork.session, _ = r.Member("parentSessionId").Text()
	c.fork.last, _ = r.Member("parentLastUuid").Text()
}

// beginFork appends the parent's branch that the subagent continues, if it exists.
func (c *converter) beginFork(out []byte) []byte {
	if c.fork.last == "" || c.projects == nil || c.Listed || c.Facts || !isName(c.fork.session) {
		return out
	}
	name := path.Join(c.Before, c.fork.session+ending)
	p := newConverter(agents.About{ID: c.fork.session}, newLearned())
	p.path = name
	var text []byte
	for range maxContextReadings {
		if text = p.convertTo(c.projects, name, c.fork.last); p.places[c.fork.last] == nil {
			return out
		}
		next := p.Restart()
		if next == nil {
			break
		}
		p = next.(*converter)
	}
	return c.appendBranch(p, out, text)
}

// convertTo returns the entries of a file's records up to one of them.
func (c *converter) convertTo(files *Projects, name, last string) (out []byte) {
	files.eachRecord(name, maxContext, func(u *jsonl.Unit) error {
		out = c.Add(out, agents.OneLine(u), u.Line)
		if c.places[last] != nil {
			return jsonl.ErrStop
		}
		return nil
	})
	return c.Tail(out)
}

// appendBranch appends the branch in text, the entries of p, that the subagent continues.
func (c *converter) appendBranch(p *converter, out, text []byte) []byte {
	entries := map[string][]byte{}
	for line := range bytes.Lines(text) {
		id, _ := rawjson.Value(line).Member("id").Text()
		entries[id] = line
	}
	var branch []string
	isOn := map[string]bool{}
	for id := p.places[c.fork.last].id; entries[id] != nil && !isOn[id]; {
		branch, isOn[id] = append(branch, id), true
		id, _ = rawjson.Value(entries[id]).Member("parentId").Text()
	}
	for _, id := range slices.Backward(branch) {
		out = append(out, entries[id]...)
	}
	for uuid, at := range p.places {
		if isOn[at.id] {
			c.places[uuid] = at
		}
	}
	for id, known := range p.calls {
		if isOn[known.place.id] {
			c.calls[id] = known
		}
	}
	c.end = p.places[c.fork.last]
	c.last, c.newest, c.latest = c.end.id, c.end.id, p.latest
	return out
}

package claude

import (
	"bytes"
	"path"
	"slices"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
)

// This file begins the session of a subagent that continues its parent's talk (docs/format-claude.md): its file names the last record of that talk, and has none of it.

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
	c.fork.session, _ = r.AnyOf("parentSessionId", "sessionId").Text()
	c.fork.last, _ = r.Member("parentLastUuid").Text()
}

// beginFork adds the parent's branch that the subagent continues, if it exists.
func (c *converter) beginFork() {
	_, hasOwn := c.learned.counts[c.fork.last] // the file repeats the talk
	if c.fork.last == "" || hasOwn || c.projects == nil || c.Listed || c.Facts || !isName(c.fork.session) {
		return
	}
	name := path.Join(c.Before, c.fork.session+ending)
	p := newConverter(agents.About{ID: c.fork.session}, c.projects, name)
	for reading := range maxContextReadings {
		text := p.convertTo(name, c.fork.last)
		if p.places[c.fork.last] == nil {
			return
		}
		isLast := reading+1 == maxContextReadings
		if isLast || p.Restart() == nil {
			c.addBranch(p, text)
			return
		}
	}
}

// convertTo returns the entries of a file's records up to one of them.
func (c *converter) convertTo(name, last string) (out []byte) {
	c.projects.eachRecord(name, maxContext, func(u *jsonl.Unit) error {
		out = c.Add(out, agents.OneLine(u), u.Line)
		if c.places[last] != nil {
			return jsonl.ErrStop
		}
		return nil
	})
	return c.Tail(out)
}

// addBranch adds the branch in text, the entries of p, that the subagent continues.
func (c *converter) addBranch(p *converter, text []byte) {
	entries := map[string][]byte{}
	for line := range bytes.Lines(text) {
		id, _ := rawjson.Value(line).Member("id").Text()
		entries[id] = line
	}
	var branch []string
	isOn := map[string]bool{}
	for id := p.places[c.fork.last].id; entries[id] != nil && !isOn[id]; {
		branch = append(branch, id)
		isOn[id] = true
		id, _ = rawjson.Value(entries[id]).Member("parentId").Text()
	}
	for _, id := range slices.Backward(branch) {
		c.Include(id, entries[id])
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
	c.KnowTools(p.Builder)
	c.end = p.places[c.fork.last]
	c.newest = c.end.id
	c.latest = p.latest
}

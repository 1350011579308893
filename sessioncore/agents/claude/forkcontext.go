package claude

import (
	"bytes"
	"context"
	"path"
	"slices"

	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage/foreign"
)

// This file begins the session of a subagent that goes on from the talk of its parent (docs/format.md, Claude Code): its
// file names the last record of that talk, and has none of it.

const (
	// maxContext is the number of bytes of a parent's file that are read for a subagent.
	maxContext = 64 << 20
	// maxContextReadings is how often it is converted until its converter has learned nothing more.
	maxContextReadings = 4
)

// forkContext names the record of a parent's file from which a subagent goes on.
type forkContext struct{ session, last string }

// setFork handles a record of type fork-context-ref.
func (c *converter) setFork(r *record) {
	c.fork.session, _ = r.Member("parentSessionId").Text()
	c.fork.last, _ = r.Member("parentLastUuid").Text()
}

// beginFork appends the branch of the parent from which the subagent goes on. The client goes on without it where it is
// not there.
func (c *converter) beginFork(out []byte) []byte {
	if c.fork.last == "" || c.projects == nil || c.Listed || c.Facts || !isName(c.fork.session) {
		return out
	}
	name := path.Join(c.Before, c.fork.session+ending)
	p := newConverter(foreign.About{ID: c.fork.session}, newLearned())
	p.path = name
	var text []byte
	for range maxContextReadings {
		if text = p.convertTo(c.projects, name, c.fork.last); p.places[c.fork.last] == nil {
			return out
		}
		again := p.Restart()
		if again == nil {
			break
		}
		p = again.(*converter)
	}
	return c.continues(p, out, text)
}

// convertTo returns the entries that the records of a file up to one of them become.
func (c *converter) convertTo(files *Projects, name, last string) (out []byte) {
	obj, err := files.Open(name)
	if err != nil {
		return nil
	}
	defer obj.Close()
	st, err := obj.Stat()
	if err != nil {
		return nil
	}
	_, _ = jsonl.Load(context.Background(), obj, jsonl.Position{}, min(st.Size, maxContext), func(u *jsonl.Unit) error {
		if u.Kind == jsonl.ObjectUnit {
			out = c.Add(out, foreign.OneLine(u), u.Line)
		}
		if c.places[last] != nil {
			return jsonl.ErrStop
		}
		return nil
	}) // records read before an error count
	return c.Tail(out)
}

// continues appends the branch of text, the entries of p, that ends on the record from which the subagent goes on.
func (c *converter) continues(p *converter, out, text []byte) []byte {
	entries := map[string][]byte{}
	for line := range bytes.Lines(text) {
		id, _ := rawjson.Value(line).Member("id").Text()
		entries[id] = line
	}
	var branch []string
	on := map[string]bool{}
	for id := p.places[c.fork.last].id; entries[id] != nil && !on[id]; {
		branch, on[id] = append(branch, id), true
		id, _ = rawjson.Value(entries[id]).Member("parentId").Text()
	}
	for _, id := range slices.Backward(branch) {
		out = append(out, entries[id]...)
	}
	for uuid, at := range p.places {
		if on[at.id] {
			c.places[uuid] = at
		}
	}
	for id, called := range p.calls {
		if on[called.place.id] {
			c.calls[id] = called
		}
	}
	c.end = p.places[c.fork.last]
	c.last, c.newest, c.latest = c.end.id, c.end.id, p.latest
	return out
}

package claude

import (
	"bytes"
	"path"
	"slices"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
)

// This file begins the session of a subagent that continues its parent's talk (docs/format-claude.md): its file names
// the last record of that talk, and has none of it.

const (
	// maxContext bounds the bytes of a parent's file that are read for a subagent.
	maxContext = 64 << 20
	// maxContextReadings bounds the conversions of that by converters that restart.
	maxContextReadings = 4
)

// forkContext is the record of a parent's file that a subagent continues.
type forkContext struct {
	session string // the parent's id, or ""
	last    string // the uuid of the record, or ""
}

// setFork handles a record of type fork-context-ref.
func (c *converter) setFork(r *record) {
	c.fork.session, _ = r.AnyOf("parentSessionId", "sessionId").Text()
	c.fork.last, _ = r.Member("parentLastUuid").Text()
}

// beginFork adds the parent's branch that the subagent continues. It does nothing if there is none, if the parent's
// file cannot be read, and where no contents are needed.
func (c *converter) beginFork() {
	_, hasOwn := c.learned.counts[c.fork.last] // the file repeats the talk
	if c.fork.last == "" || hasOwn || c.projects == nil || c.Listed || c.Facts || !isName(c.fork.session) {
		return
	}
	name := path.Join(c.Before, c.fork.session+ending)
	parent := newConverter(agents.About{ID: c.fork.session}, c.projects, name)
	for reading := range maxContextReadings {
		text := parent.convertTo(name, c.fork.last)
		if parent.places[c.fork.last] == nil {
			return
		}
		isLast := reading+1 == maxContextReadings
		if isLast || parent.Restart() == nil { // Restart makes parent the converter of the next reading
			c.addBranch(parent, text)
			return
		}
	}
}

// convertTo returns the entries of a file's records up to the record last, or of the part of the file that may be
// read.
func (c *converter) convertTo(name, last string) (text []byte) {
	c.projects.eachRecord(name, maxContext, func(u *jsonl.Unit) error {
		text = c.Add(text, agents.OneLine(u), u.Line)
		if c.places[last] != nil {
			return jsonl.ErrStop
		}
		return nil
	})
	return c.Tail(text)
}

// addBranch adds the branch of the parent's entries, in text, that the subagent continues. The subagent's records may
// hang on its places, and have results of its calls.
func (c *converter) addBranch(parent *converter, text []byte) {
	last := parent.places[c.fork.last]
	lines := map[string][]byte{}
	for line := range bytes.Lines(text) {
		id, _ := rawjson.Value(line).Member("id").Text()
		lines[id] = line
	}
	branch := branchTo(last.id, lines)
	isOn := map[string]bool{}
	for _, id := range branch {
		isOn[id] = true
		c.Include(id, lines[id])
	}
	for uuid, p := range parent.places {
		if isOn[p.id] {
			c.places[uuid] = p
		}
	}
	for id, call := range parent.calls {
		if isOn[call.place.id] {
			c.calls[id] = call
		}
	}
	c.KnowTools(parent.Builder)
	c.end = last
	c.newest = last.id
	c.latest = parent.latest
}

// branchTo returns the ids of the entries from a root to the entry last. lines has the entries by their ids.
func branchTo(last string, lines map[string][]byte) []string {
	var branch []string
	isOn := map[string]bool{}
	id := last
	for lines[id] != nil && !isOn[id] { // a parent may be missing, or an entry below it
		branch = append(branch, id)
		isOn[id] = true
		id, _ = rawjson.Value(lines[id]).Member("parentId").Text()
	}
	slices.Reverse(branch)
	return branch
}

package claude

import (
	"slices"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// boundary is a record of a compaction. Another record with the summary follows it.
type boundary struct {
	uuid         string
	on           *branchPoint // of its parent
	time, tokens rawjson.Value
	kept         string // the first message that is kept, or ""
	end          string // the last one, on which the conversation continues
	line         int64
}

// isBoundary reports whether a record begins a compaction.
func isBoundary(r *record) bool {
	return r.typ.Is("system") && r.Member("subtype").Is("compact_boundary")
}

// isSummary reports whether a record is the summary of a compaction.
func isSummary(r *record) bool {
	return r.typ.Is("user") && r.Member("isCompactSummary").IsTrue()
}

func newBoundary(c *converter, r *record) *boundary {
	b := &boundary{uuid: r.id(), on: c.end, time: slices.Clone(r.time()), line: r.line}
	before, ok := r.Member("logicalParentUuid").Text()
	if !ok {
		before = r.parent
	}
	if p := c.places[before]; p != nil {
		b.on = p
	}
	b.on.extended = true
	about := r.Member("compactMetadata")
	b.tokens = slices.Clone(about.Member("preTokens"))
	segment := about.Member("preservedSegment")
	b.kept, _ = segment.Member("headUuid").Text()
	b.end, _ = segment.Member("tailUuid").Text()
	c.behind[b.kept] = true
	c.behind[b.end] = true
	for v := range about.Member("preservedMessages").Member("uuids").EachElement {
		b.end, _ = v.Text()
		if b.kept == "" {
			b.kept = b.end
		}
		c.behind[b.end] = true
	}
	c.compacted[r.uuid] = true
	c.at(r, &branchPoint{id: b.on.id, up: b.on}, before)
	return b
}

// compaction makes the entry of a compaction from the summary r and the boundary before it. Older
// versions write the summary alone.
func (c *converter) compaction(r *record) {
	c.send()
	c.answer.id = ""
	b := c.bound
	c.bound = nil
	if b == nil {
		b = &boundary{uuid: r.id(), on: c.parentOf(r), time: r.time(), line: r.line}
		if b.on.id == "" {
			b.on = c.end
		}
	}
	lines := slices.Compact([]int64{b.line, r.line})
	kept := ""
	if p := c.places[b.kept]; p != nil && b.kept != "" {
		kept = p.first
		if kept == "" {
			kept = p.id
		}
	}
	c.From(b.uuid, b.time, lines...)
	c.HangOn(b.on.id, 0)
	summary := rawjson.AppendQuoted(nil, agents.ChatText(r.message.Member("content")))
	c.Compaction(summary, kept, agents.Count(b.tokens))
	at := &branchPoint{id: c.Last(), first: c.Last(), up: b.on}
	for _, uuid := range []string{b.uuid, b.end} {
		if c.places[uuid] != nil { // else it comes later
			c.places[uuid] = at
		}
	}
	c.compacted[r.uuid] = true
	c.at(r, at, b.uuid)
	c.note(b.time, b.on.id, at)
}

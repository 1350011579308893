package claude

import (
	"slices"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// boundary is a record of a compaction. Another record with the summary follows it.
type boundary struct {
	uuid   string        // the id of its record
	on     *branchPoint  // the place of its parent
	time   rawjson.Value // of its record
	tokens rawjson.Value // of the context before; may be missing
	kept   string        // uuid of the first message that is kept, or ""
	end    string        // uuid of the last one, or ""; the conversation continues there
	line   int64
}

// isBoundary reports whether a record begins a compaction.
func isBoundary(r *record) bool {
	return r.typ.Is("system") && r.Member("subtype").Is("compact_boundary")
}

// isSummary reports whether a record is the summary of a compaction.
func isSummary(r *record) bool {
	return r.typ.Is("user") && r.Member("isCompactSummary").IsTrue()
}

// beginCompaction handles the first record of a compaction. The records behind it are a new context: the leaf
// recorded so far does not count in it, and no record adds to the open answer.
func (c *converter) beginCompaction(r *record) {
	c.send()
	c.leaf = leaf{}
	c.answer.id = "" // copies of the answer's records may follow
	c.behind = map[string]bool{}
	c.bound = c.newBoundary(r)
}

// newBoundary returns the boundary of a record, and adds the messages that it keeps to c.behind. Until the summary
// comes, records that hang on it hang on the conversation before it.
func (c *converter) newBoundary(r *record) *boundary {
	metadata := r.Member("compactMetadata")
	tokens := metadata.Member("preTokens")
	b := &boundary{
		uuid:   r.id(),
		time:   slices.Clone(r.time()),
		tokens: slices.Clone(tokens),
		line:   r.line,
	}
	c.keepMessages(b, metadata)
	before, ok := r.Member("logicalParentUuid").Text()
	if !ok {
		before = r.parent
	}
	b.on = c.places[before]
	if b.on == nil { // that record was never written
		b.on = c.end
	}
	b.on.extended = true
	c.compacted[r.uuid] = true
	c.setPlace(r, &branchPoint{id: b.on.id, up: b.on}, before)
	return b
}

// keepMessages reads which messages a compaction keeps: older versions name the first and the last one, newer ones
// all. They count as written behind the boundary.
func (c *converter) keepMessages(b *boundary, metadata rawjson.Value) {
	segment := metadata.Member("preservedSegment")
	b.kept, _ = segment.Member("headUuid").Text()
	b.end, _ = segment.Member("tailUuid").Text()
	c.behind[b.kept] = true
	c.behind[b.end] = true
	for v := range metadata.Member("preservedMessages").Member("uuids").EachElement {
		b.end, _ = v.Text()
		if b.kept == "" {
			b.kept = b.end
		}
		c.behind[b.end] = true
	}
}

// compaction makes the entry of a compaction from the summary r and the boundary before it. Older
// versions write the summary alone.
func (c *converter) compaction(r *record) {
	c.send()
	c.answer.id = "" // no record adds to the answer before it
	b := c.bound
	c.bound = nil
	if b == nil {
		b = c.boundaryOfSummary(r)
	}
	lines := slices.Compact([]int64{b.line, r.line})
	c.From(b.uuid, b.time, lines...)
	c.HangOn(b.on.id, 0)
	text := agents.ChatText(r.message.Member("content"))
	summary := rawjson.AppendQuoted(nil, text)
	c.Compaction(summary, c.firstKept(b), agents.Count(b.tokens))
	made := &branchPoint{id: c.Last(), first: c.Last(), up: b.on}
	for _, uuid := range []string{b.uuid, b.end} { // the conversation continues on either of them
		if c.places[uuid] != nil { // else it comes later
			c.places[uuid] = made
		}
	}
	c.compacted[r.uuid] = true
	c.setPlace(r, made, b.uuid)
	c.noteLast(b.time, b.on.id, made)
}

// boundaryOfSummary returns the boundary of a compaction that has only a summary.
func (c *converter) boundaryOfSummary(r *record) *boundary {
	b := &boundary{
		uuid: r.id(),
		on:   c.parentOf(r),
		time: r.time(),
		line: r.line,
	}
	if b.on.id == "" {
		b.on = c.end
	}
	return b
}

// firstKept returns the first entry that a compaction keeps, "" if it keeps none or the file has none of them.
func (c *converter) firstKept(b *boundary) string {
	p := c.places[b.kept]
	switch {
	case p == nil || b.kept == "":
		return ""
	case p.first != "":
		return p.first
	}
	return p.id
}

package codex

import (
	"slices"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// header appends the session's header. meta is the session_meta, or nil if that is damaged.
func (c *converter) header(out []byte, at rawjson.Value, meta agents.Object) []byte {
	c.hasHeader = true
	if own := meta.Member("timestamp"); !own.Missing() {
		at = own
	}
	h := agents.Header{
		Time: at, Cwd: meta.Member("cwd"), Originator: meta.Member("originator"), Version: meta.Member("cli_version"),
		Git: meta.Member("git"), Base: meta.Member("history_base"),
		Subagent: subagentOf(meta.Member("source"), meta.Member("thread_source")),
	}
	out = h.AppendTo(out, &c.About)
	for _, problem := range c.problems { // a line that is no object is in problems.jsonl
		out = append(rawjson.AppendQuoted(out, problem), '\n')
	}
	return out
}

// oldRollout is the beginning of a rollout of mid-2025, whose lines have no envelope: a header,
// then items without times. A message of the program has the working directory.
type oldRollout struct {
	first   rawjson.Value // the header, or nil
	time    rawjson.Value
	cwd     string
	entries []byte // made before the header
}

// maxHeld bounds the entries before the working directory is known, in bytes.
const maxHeld = 256 << 10

// addOld handles a line without an envelope.
func (c *converter) addOld(out []byte, r *record, line agents.Object, v rawjson.Value) []byte {
	typ, _ := line.Member("type").Text()
	b := &c.old
	isFirst := !c.hasHeader && b.first == nil
	if isFirst && typ == "" && line.Member("id").IsString() && line.Member("timestamp").IsString() {
		b.first, b.time = slices.Clone(v), slices.Clone(line.Member("timestamp"))
		c.ID, _ = line.Member("id").Text()
	}
	isItem := typ == "message" || typ == "reasoning" ||
		strings.HasSuffix(typ, "_call") || strings.HasSuffix(typ, "_output")
	if !isItem || !c.hasHeader && b.first == nil {
		return out
	}
	if r.payload = line; r.time.Missing() {
		r.time = b.time
	}
	if content := line.Member("content"); !c.hasHeader && line.Member("role").Is("user") && isContext(content) {
		b.entries, b.cwd = c.item(b.entries, r, line), cwdIn(content)
		if b.cwd == "" && len(b.entries) < maxHeld {
			return out
		}
		return c.beginOld(out)
	}
	return c.item(c.beginOld(out), r, line)
}

// beginOld appends the header and the entries before it, if they are not written yet.
func (c *converter) beginOld(out []byte) []byte {
	b := &c.old
	if c.hasHeader || b.first == nil {
		return out
	}
	meta := agents.Read(b.first)
	if b.cwd != "" {
		meta = append(meta, rawjson.Member{Key: rawjson.Value(`"cwd"`), Value: rawjson.AppendQuoted(nil, b.cwd)})
	}
	out = append(c.header(out, nil, meta), b.entries...)
	b.first, b.entries = nil, nil
	return out
}

// cwdIn returns the working directory in a message of the program, or "".
func cwdIn(content rawjson.Value) (cwd string) {
	content.EachElement(func(block rawjson.Value, _ int) bool {
		text, _ := block.Member("text").Text()
		if _, after, found := strings.Cut(text, "<cwd>"); found {
			cwd, _, _ = strings.Cut(after, "</cwd>")
		} else if _, after, found := strings.Cut(text, "Current working directory: "); found {
			cwd, _, _ = strings.Cut(after, "\n")
		}
		cwd = strings.TrimSpace(cwd)
		return cwd == ""
	})
	return cwd
}

package codex

import (
	"slices"
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage/foreign"
)

// header appends the session's header. meta is the session_meta, nil if that is damaged.
func (c *converter) header(out []byte, at rawjson.Value, meta foreign.Object) []byte {
	c.begun = true
	if told := meta.Member("timestamp"); !told.Missing() {
		at = told
	}
	out = rawjson.AppendQuoted(append(out, `{"type":"session","version":3,"id":`...), c.ID)
	out = c.AppendMembers(foreign.AppendText(foreign.AppendMember(out, "timestamp", at), "cwd", meta.Member("cwd")))
	out = foreign.AppendText(out, "originator", meta.Member("originator"))
	out = foreign.AppendText(out, "cliVersion", meta.Member("cli_version"))
	out = foreign.AppendMember(out, "git", meta.Member("git"))
	out = foreign.AppendMember(out, "historyBase", meta.Member("history_base"))
	out = foreign.AppendMember(out, "subagent", subagentOf(meta.Member("source"), meta.Member("thread_source")))
	out = append(out, "}\n"...)
	for _, problem := range c.problems { // a line that is no object is in problems.jsonl
		out = append(rawjson.AppendQuoted(out, problem), '\n')
	}
	return out
}

// bare is the beginning of a rollout of mid-2025, whose lines have no envelope: the first one is
// the header, the others are items, without times. The working directory is in a message that the
// program put in.
type bare struct {
	first rawjson.Value // line, nil before it
	time  rawjson.Value
	cwd   string
	held  []byte // entries that the header comes before
}

// maxHeld is how many bytes are held until the working directory is known.
const maxHeld = 256 << 10

// addBare takes a line without an envelope.
func (c *converter) addBare(out []byte, r *record, line foreign.Object, v rawjson.Value) []byte {
	typ, _ := line.Member("type").Text()
	b := &c.bare
	if !c.begun && b.first == nil && typ == "" && line.Member("id").IsString() && line.Member("timestamp").IsString() {
		b.first, b.time = slices.Clone(v), slices.Clone(line.Member("timestamp"))
		c.ID, _ = line.Member("id").Text()
	}
	isItem := typ == "message" || typ == "reasoning" ||
		strings.HasSuffix(typ, "_call") || strings.HasSuffix(typ, "_output")
	if !isItem || !c.begun && b.first == nil {
		return out
	}
	if r.payload = line; r.time.Missing() {
		r.time = b.time
	}
	if content := line.Member("content"); !c.begun && line.Member("role").Is("user") && isContext(content) {
		b.held, b.cwd = c.item(b.held, r, line), cwdIn(content)
		if b.cwd == "" && len(b.held) < maxHeld {
			return out
		}
		return c.beginBare(out)
	}
	return c.item(c.beginBare(out), r, line)
}

// beginBare appends the header and the held entries, if it was not appended yet.
func (c *converter) beginBare(out []byte) []byte {
	b := &c.bare
	if c.begun || b.first == nil {
		return out
	}
	meta := foreign.Read(b.first)
	if b.cwd != "" {
		meta = append(meta, rawjson.Member{Key: rawjson.Value(`"cwd"`), Value: rawjson.AppendQuoted(nil, b.cwd)})
	}
	out = append(c.header(out, nil, meta), b.held...)
	b.first, b.held = nil, nil
	return out
}

// cwdIn returns the working directory that the program tells the model in a message, "" if it is
// not in that.
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

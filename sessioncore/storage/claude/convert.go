package claude

import (
	"strconv"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage/foreign"
)

// converter makes the lines of a session of the records of one file (docs/format.md, Claude Code). The tree is that of
// the records, without those that say nothing.
type converter struct {
	foreign.About

	begun  bool // the header is written
	places map[string]*place
	calls  map[string]call // by the id of a tool call
	open   *answer         // the last answer, while it can still get more
	closed map[string]bool // the ids of earlier answers
	bound  *boundary       // the compaction whose summary is to come

	leaf   leaf
	last   string // the entry made last
	newest string // the end of the branch with the latest time
	latest int64  // that time, in milliseconds since the epoch
}

// place is what the children of a record hang on. The records of an answer and those of its results share one: its id is
// that of the last of them, since the results of parallel calls hang on the records of their own calls.
type place struct {
	id    string // of an entry; "" before the first
	first string // the first entry of the record, or of the answer
	taken bool   // an entry hangs on it that is no result
}

// call is what is known of a tool call.
type call struct {
	name  rawjson.Value
	place *place
}

// newConverter returns a converter for a file.
func newConverter(about foreign.About) *converter {
	return &converter{About: about, places: map[string]*place{}, calls: map[string]call{}, closed: map[string]bool{}}
}

// Add implements foreign.Converter.
func (c *converter) Add(out []byte, v rawjson.Value, line int64) []byte {
	r := &record{Object: foreign.Read(v), line: line}
	r.typ = r.Member("type")
	r.uuid, _ = r.Member("uuid").Text()
	r.parent, _ = r.Member("parentUuid").Text()
	if isTrue(r.Member("isSidechain")) != c.Side && r.uuid != "" {
		return out
	}
	if !c.begun && r.uuid != "" {
		out, c.begun = c.header(out, r), true
	}
	switch {
	case r.typ.Is("user") && isTrue(r.Member("isCompactSummary")):
		return c.compaction(c.flush(out), r)
	case r.typ.Is("user"):
		return c.user(out, r)
	case r.typ.Is("assistant"):
		return c.assistant(out, r)
	case r.typ.Is("system") && r.Member("subtype").Is("compact_boundary"):
		out = c.flush(out)
		c.leaf = leaf{}
		c.bound = newBoundary(c, r)
		return out
	case r.typ.Is("last-prompt"):
		c.leaf.set(r)
	}
	c.pass(r)
	return out
}

// record is a line of the file.
type record struct {
	foreign.Object
	line         int64
	typ          rawjson.Value
	uuid, parent string
}

// id returns the id of the first entry that a record becomes.
func (r *record) id() string {
	if r.uuid != "" {
		return r.uuid
	}
	return "l" + strconv.FormatInt(r.line, 10)
}

func (r *record) time() rawjson.Value { return r.Member("timestamp") }

func isTrue(v rawjson.Value) bool { return string(v) == "true" }

// header appends the session's header, which takes after the first record of the conversation.
func (c *converter) header(out []byte, r *record) []byte {
	out = append(out, `{"type":"session","version":3,"id":`...)
	out = rawjson.AppendQuoted(out, c.ID)
	out = foreign.AppendMember(out, "timestamp", r.time())
	out = foreign.AppendMember(out, "cwd", r.Member("cwd"))
	out = c.AppendMembers(out)
	out = foreign.AppendMember(out, "cliVersion", r.Member("version"))
	out = foreign.AppendMember(out, "gitBranch", r.Member("gitBranch"))
	return append(out, "}\n"...)
}

// pass makes the children of a record that becomes no entry hang on its parent.
func (c *converter) pass(r *record) {
	if r.uuid != "" {
		c.places[r.uuid] = c.placeOf(r.parent)
	}
}

// placeOf returns what the children of a record hang on. A record that is not in the file leaves its name, so that the
// entry shows as one without its parent.
func (c *converter) placeOf(uuid string) *place {
	if p := c.places[uuid]; p != nil {
		return p
	}
	return &place{id: uuid}
}

// put appends an entry to out, or to what follows the answer that is still open.
func (c *converter) put(out []byte, e *foreign.Entry) []byte {
	c.made(e)
	if c.open == nil {
		return e.AppendTo(out)
	}
	c.open.after = e.AppendTo(c.open.after)
	if len(c.open.after) > maxAfter {
		return c.flush(out)
	}
	return out
}

// made notes that an entry is the last. The newest one is the end of a branch: what hangs on it takes its place, whatever its
// time.
func (c *converter) made(e *foreign.Entry) {
	c.last = e.ID
	ms, _, ok := rawjson.ReadTimestamp(e.Time)
	if ok && ms >= c.latest || e.Parent == c.newest {
		c.newest, c.latest = e.ID, max(ms, c.latest)
	}
}

// user makes entries of a person's message, of what the agent put in for the model, and of results of tools, which are all
// records of this type.
func (c *converter) user(out []byte, r *record) []byte {
	content := r.Member("message").Member("content")
	parts := split(content)
	if len(parts) == 0 {
		c.pass(r)
		return out
	}
	at := c.placeOf(r.parent)
	for i, p := range parts {
		e := foreign.Entry{ID: r.id(), Time: r.time(), Lines: []int64{r.line}}
		if i > 0 {
			e.ID += "." + strconv.Itoa(i+1)
		}
		switch {
		case p.isResult():
			at = c.resultPlace(p.result, at)
			e.Type, e.Body = "message", c.result(r, p.result, len(parts) == 1)
		case isTrue(r.Member("isMeta")):
			e.Type = "custom_message"
			e.Body = append(append([]byte(`"customType":"claude/meta","content":`), p.content...), `,"display":false`...)
		default:
			e.Type = "message"
			e.Body = append(append([]byte(`"message":{"role":"user","content":`), p.content...), foreign.AppendMillis(nil, r.time())...)
			e.Body = append(e.Body, '}')
		}
		e.Parent = at.id
		if p.isResult() {
			at.id = e.ID
		} else {
			at.taken = true
			at = &place{id: e.ID, first: r.id()}
		}
		out = c.put(out, &e)
	}
	if r.uuid != "" {
		c.places[r.uuid] = at
	}
	return out
}

// resultPlace returns where a result belongs: behind the answer with its call and the results that came before. One that
// comes when the conversation has gone on belongs to the end of that.
func (c *converter) resultPlace(result foreign.Object, at *place) *place {
	id, _ := result.Member("tool_use_id").Text()
	called, ok := c.calls[id]
	switch {
	case !ok:
		return &place{id: at.id, first: at.first}
	case called.place.taken:
		return &place{id: c.last}
	}
	return called.place
}

// result returns the body of a tool result's entry. What the client keeps of the result besides is that of the record's
// only result.
func (c *converter) result(r *record, result foreign.Object, only bool) []byte {
	id := result.Member("tool_use_id")
	text, _ := id.Text()
	b := []byte(`"message":{"role":"toolResult"`)
	b = foreign.AppendMember(b, "toolCallId", id)
	if name := c.calls[text].name; len(name) > 0 {
		b = foreign.AppendMember(b, "toolName", name)
	} else {
		b = append(b, `,"toolName":"unknown"`...)
	}
	b = append(b, `,"content":`...)
	b = appendContent(b, result.Member("content"))
	if only {
		b = foreign.AppendMember(b, "details", r.Member("toolUseResult"))
	}
	b = append(b, `,"isError":`...)
	b = strconv.AppendBool(b, isTrue(result.Member("is_error")))
	return append(foreign.AppendMillis(b, r.time()), '}')
}

// Tail implements foreign.Converter: the answer that may get more, and where the conversation stands if that is not its
// last entry.
func (c *converter) Tail(out []byte) []byte {
	if c.open != nil {
		out = c.open.appendTo(out)
	}
	at := c.newest
	switch {
	case c.leaf.id != "" && c.leaf.pinned:
		if p := c.places[c.leaf.id]; p != nil {
			at = p.id
		}
	case c.leaf.id != "":
		at = c.last
	}
	if at == c.last || at == "" {
		return out
	}
	return foreign.AppendLeaf(out, at, c.leaf.line)
}

// leaf is what the records say about where the conversation stands.
type leaf struct {
	id     string // of a record; "" for nothing
	pinned bool   // the person went there
	line   int64
}

// set takes a record of type last-prompt: one that is explicit pins the leaf or, without a record, forgets all; another
// one, with another leaf, takes the pin away.
func (l *leaf) set(r *record) {
	id, _ := r.Member("leafUuid").Text()
	switch explicit := isTrue(r.Member("explicit")); {
	case explicit:
		l.id, l.pinned, l.line = id, id != "", r.line
	case id != "" && id != l.id:
		l.id, l.pinned, l.line = id, false, r.line
	}
}

// part is a run of texts and images in a user record, or one result.
type part struct {
	content []byte // JSON
	result  foreign.Object
}

func (p *part) isResult() bool { return len(p.result) > 0 }

// split returns the parts of a user record's content.
func split(content rawjson.Value) (parts []part) {
	if text, ok := content.Bytes(); ok && len(text) > 0 {
		return []part{{content: content}}
	}
	var run []byte
	end := func() {
		if len(run) > 0 {
			parts, run = append(parts, part{content: append(run, ']')}), nil
		}
	}
	content.EachElement(func(block rawjson.Value, _ int) bool {
		switch {
		case block.Member("type").Is("tool_result"):
			end()
			parts = append(parts, part{result: foreign.Read(block)})
		case block.IsObject():
			if len(run) == 0 {
				run = append(run, '[')
			} else {
				run = append(run, ',')
			}
			run = appendBlock(run, block)
		}
		return true
	})
	end()
	return parts
}

// appendContent appends content as a list of blocks.
func appendContent(dst []byte, content rawjson.Value) []byte {
	dst = append(dst, '[')
	if content.IsString() {
		dst = append(append(append(dst, `{"type":"text","text":`...), content...), '}')
	}
	n := 0
	content.EachElement(func(block rawjson.Value, _ int) bool {
		if n++; n > 1 {
			dst = append(dst, ',')
		}
		dst = appendBlock(dst, block)
		return true
	})
	return append(dst, ']')
}

// appendBlock appends a block of content: images as the data that they are, all others as they are.
func appendBlock(dst []byte, block rawjson.Value) []byte {
	if !block.Member("type").Is("image") {
		return append(dst, block...)
	}
	source := block.Member("source")
	data, mime := source.Member("data"), source.Member("media_type")
	if !data.IsString() || !mime.IsString() {
		return append(dst, block...)
	}
	dst = foreign.AppendMember(append(dst, `{"type":"image"`...), "data", data)
	return append(foreign.AppendMember(dst, "mimeType", mime), '}')
}

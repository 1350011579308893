package listing

import (
	"bytes"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
)

// parseInfo parses a file's prefix as the client's list does; it returns nil if the client does not list the file. It
// follows client 14.9.9; for files with a title slot, which that version does not know, 18.2.3. It also knows the
// keys of the operator dialect.
func parseInfo(prefix []byte) *Info {
	content := rawjson.AppendUTF8(nil, bytes.TrimPrefix(prefix, []byte("\xEF\xBB\xBF")))
	p := infoParser{content: content, values: prefixValues(content)}
	if !p.header() || !p.entries() {
		return nil
	}
	if p.first == "" {
		p.first = firstMessageText(content, p.flags&infoSlot != 0)
	}
	if p.first == "" {
		p.first = noMessages
	}
	p.MessageCount = max(p.MessageCount, countMessageMarkers(content))
	if p.flags&infoTitle == 0 && p.summary != nil {
		p.setTitle(*p.summary)
	}
	info := p.Info // a copy, since p holds the prefix
	return &info
}

// infoParser parses one prefix.
type infoParser struct {
	Info
	content []byte
	values  []rawjson.Value
	summary *string // replaces the title if the header has none
}

func (p *infoParser) setTitle(title string) {
	p.Title = title
	p.flags |= infoTitle
}

// header finds the header: the first value, or the one after a title slot. If that is not a header, it searches the
// text of its line, which may be longer than the prefix.
func (p *infoParser) header() bool {
	if !p.hasSlot() {
		if len(p.values) > 0 && p.parseHeader(p.values[0]) {
			return true
		}
		line, _, _ := bytes.Cut(p.content, []byte("\n"))
		return p.searchHeader(line)
	}
	p.flags |= infoSlot // whose title overrides the header's; a blank one means that there is none
	if title, _ := p.values[0].Member("title").Text(); rawjson.TrimSpace(title) != "" {
		p.setTitle(title)
	}
	if len(p.values) > 1 && p.parseHeader(p.values[1]) {
		return true
	}
	_, rest, _ := bytes.Cut(p.content, []byte("\n"))
	for line := range bytes.Lines(rest) {
		if text := rawjson.TrimSpace(string(line)); text != "" {
			return p.searchHeader([]byte(text))
		}
	}
	return false
}

// hasSlot reports whether the very first line is a title slot. Client 18.2.3 lists files with less of a slot too, but
// no client loads them.
func (p *infoParser) hasSlot() bool {
	return len(p.values) > 0 && sessioncore.IsTitleSlot(p.values[0]) && bytes.IndexByte(p.content[:p.values[0].OffsetIn(p.content)], '\n') < 0
}

// parseHeader parses v and reports whether it is a header.
func (p *infoParser) parseHeader(v rawjson.Value) bool {
	d := sessioncore.DialectOf(v)
	if d == nil {
		return false
	}
	timestamp := v.Member("timestamp")
	if !timestamp.IsString() && d != sessioncore.Operator {
		timestamp = nil
	}
	p.fields(d, timestamp, func(key string) (string, bool) { return v.Member(key).Text() })
	return true
}

// searchHeader searches the text of a line that could not be parsed, and reports whether it looks like a header.
func (p *infoParser) searchHeader(line []byte) bool {
	p.flags |= infoSearched
	text := func(key string) (string, bool) { return textString(line, key, 0) }
	typ, _ := text("type")
	d := sessioncore.DialectOfType(typ)
	if d == nil {
		return false
	}
	var timestamp rawjson.Value
	if at, ok := text("timestamp"); ok {
		timestamp = rawjson.AppendQuoted(nil, at)
	}
	p.fields(d, timestamp, text)
	return p.ID != ""
}

// fields sets what a header has.
func (p *infoParser) fields(d *sessioncore.Dialect, timestamp rawjson.Value, text func(key string) (string, bool)) {
	if d == sessioncore.Operator {
		p.flags |= infoOperator
	}
	var ok bool
	if p.created, _, ok = d.Time(timestamp); ok {
		p.flags |= infoCreated
	}
	p.ID, _ = text("id")
	p.CWD, _ = text("cwd")
	if parent, ok := text(d.ParentSessionKey); ok {
		p.Parent = parent
		p.flags |= infoParent
	}
	if title, ok := text("title"); ok && p.flags&(infoSlot|infoOperator) == 0 {
		p.setTitle(title)
	}
}

// entries parses all values but the first, which is the header or the title slot. It returns false if the client
// fails on one of them and so does not list the file.
func (p *infoParser) entries() bool {
	for i, v := range p.values {
		if i == 0 {
			continue
		}
		var typ, message, summary, name rawjson.Value
		v.EachMember(func(m rawjson.Member) bool {
			for _, f := range [...]struct {
				key string
				to  *rawjson.Value
			}{{"type", &typ}, {"message", &message}, {"shortSummary", &summary}, {"name", &name}} {
				if m.KeyIs(f.key) {
					*f.to = m.Value
				}
			}
			return true
		})
		switch {
		case string(v) == "null":
			return false
		case p.flags&infoOperator != 0 && typ.Is("session_info"): // the last one sets or removes the name
			p.summary = nil
			if text, _ := name.Text(); text != "" {
				p.summary = &text
			}
		case p.flags&infoOperator == 0 && typ.Is("compaction"):
			if text, ok := summary.Text(); ok {
				p.summary = &text
			}
		case typ.Is("message") && message.Truthy():
			if !p.message(message) {
				return false
			}
		}
	}
	return true
}

// message counts a message and keeps its text if it is the first one of a user. It returns false if the client fails
// on it.
func (p *infoParser) message(v rawjson.Value) bool {
	p.MessageCount++
	role := v.Member("role")
	user := role.Is("user")
	if !user && !role.Is("assistant") {
		return true
	}
	text, ok := contentText(v.Member("content"))
	if ok && user && p.first == "" {
		p.first = string(text)
	}
	return ok
}

// contentText returns the texts of a message's content, separated by blanks. ok is false if the client throws on it.
func contentText(content rawjson.Value) (text []byte, ok bool) {
	if !content.IsArray() {
		s, ok := content.Text()
		return []byte(s), ok
	}
	ok, first := true, true
	content.EachElement(func(block rawjson.Value, _ int) bool {
		if string(block) == "null" {
			ok = false
		}
		if block.Member("type").Is("text") {
			if !first {
				text = append(text, ' ')
			}
			first = false
			one, _ := block.Member("text").Text()
			text = append(text, one...)
		}
		return ok
	})
	return text, ok
}

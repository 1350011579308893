package search

import (
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
)

// The visible text of an entry is defined in docs/design.md section 5, search/. It is found here member by member, in
// the spelling of either dialect.

// maxContentDepth is how deep contents in contents are followed. A result in a message is 2 deep.
const maxContentDepth = 4

// message has what a query asks of a message, or of an entry that is like one.
type message struct {
	role, tool rawjson.Value
	content    rawjson.Value
	texts      [8]rawjson.Value // those that a person reads
	files      rawjson.Value
}

// textKeys are the members of a message that are texts, besides its content.
var textKeys = [...]string{"command", "code", "output", "errorMessage", "summary", "shortSummary", "toolName", "customType"}

func readMessage(v rawjson.Value) (m message) {
	v.EachMember(func(member rawjson.Member) bool {
		switch name := member.Name(); name {
		case "role":
			m.role = member.Value
		case "content":
			m.content = member.Value
		case "files":
			m.files = member.Value
		default:
			for i, key := range textKeys {
				if key == name {
					m.texts[i] = member.Value
				}
			}
			if name == "toolName" {
				m.tool = member.Value
			}
		}
		return true
	})
	return m
}

// block has what a query asks of a content block.
type block struct {
	texts             [6]rawjson.Value // those that a person reads
	kind              rawjson.Value
	name, tool        rawjson.Value
	arguments, result rawjson.Value
	inner             rawjson.Value
}

var blockKeys = [...]string{"text", "thinking", "reasoning", "name", "toolName", "intent"}

func readBlock(v rawjson.Value) (b block) {
	v.EachMember(func(member rawjson.Member) bool {
		switch name := member.Name(); name {
		case "type":
			b.kind = member.Value
		case "arguments", "input", "args", "parameters":
			b.arguments = member.Value
		case "content":
			b.result = member.Value
		case "block":
			b.inner = member.Value
		default:
			for i, key := range blockKeys {
				if key == name {
					b.texts[i] = member.Value
				}
			}
			if name == "name" {
				b.name = member.Value
			} else if name == "toolName" {
				b.tool = member.Value
			}
		}
		return true
	})
	return b
}

// isCall reports whether a block is a call of a tool, in the words of any provider.
func (b *block) isCall() bool {
	kind, _ := b.kind.Text()
	switch rawjson.CamelCase(kind) {
	case "toolCall", "toolUse", "functionCall", "serverToolUse":
		return true
	}
	return false
}

// reader takes an entry apart. Its functions return false once no more is asked for.
type reader struct {
	// text gets each piece of visible text: a string, or a number in arguments.
	text func(rawjson.Value) bool
	// tool gets the name of each tool that is called or has answered.
	tool func(rawjson.Value) bool
}

// entry reads an entry, and returns its message, the zero one for other entries.
func (r *reader) entry(s *sessioncore.Snapshot, e sessioncore.Entry, text rawjson.Value) (m message) {
	switch s.Kind(e) {
	case sessioncore.TypeMessage:
		m = readMessage(s.Message(e, text))
		r.message(&m)
	case sessioncore.TypeCustomMessage, sessioncore.TypeCompaction, sessioncore.TypeBranchSummary:
		like := readMessage(text)
		r.message(&like)
	case sessioncore.TypeTitleChange, sessioncore.TypeSessionInfo:
		_ = r.string(text.Member("title")) && r.string(text.Member("name"))
	case sessioncore.TypeLabel:
		r.string(text.Member("label"))
	}
	return m
}

func (r *reader) message(m *message) {
	if m.tool.IsString() && !r.tool(m.tool) {
		return
	}
	for _, v := range m.texts {
		if !r.string(v) {
			return
		}
	}
	more := true
	m.files.EachElement(func(file rawjson.Value, _ int) bool {
		more = r.string(file.Member("path")) && r.string(file.Member("content"))
		return more
	})
	if more {
		r.content(m.content, 0)
	}
}

// string gives a string to text. Other values are no text.
func (r *reader) string(v rawjson.Value) bool { return !v.IsString() || r.text(v) }

func (r *reader) content(v rawjson.Value, depth int) (more bool) {
	switch {
	case v.IsString():
		return r.text(v)
	case v.IsObject():
		return r.block(v, depth)
	}
	more = true
	v.EachElement(func(element rawjson.Value, _ int) bool {
		if element.IsString() {
			more = r.text(element)
		} else {
			more = r.block(element, depth)
		}
		return more
	})
	return more
}

func (r *reader) block(v rawjson.Value, depth int) bool {
	b := readBlock(v)
	for _, text := range b.texts {
		if !r.string(text) {
			return false
		}
	}
	if b.isCall() && b.name.IsString() && !r.tool(b.name) || b.tool.IsString() && !r.tool(b.tool) || !r.scalars(b.arguments) {
		return false
	}
	if depth == maxContentDepth {
		return true
	}
	return r.content(b.result, depth+1) && (!b.inner.IsObject() || r.block(b.inner, depth+1))
}

// scalars gives the strings and numbers in a value, except keys, to text. It does not recurse: the value can be nested
// deeply.
func (r *reader) scalars(v rawjson.Value) bool {
	var s rawjson.Scanner
	for i := 0; i < len(v); {
		switch c := v[i]; {
		case c == '"':
			end, _ := s.SkipString(v, i+1)
			after := rawjson.SkipSpace(v, end)
			if isKey := after < len(v) && v[after] == ':'; !isKey && !r.text(v[i:end]) {
				return false
			}
			i = end
		case c == '-' || c >= '0' && c <= '9':
			end, _ := s.SkipNumber(v, i)
			if !r.text(v[i:end]) {
				return false
			}
			i = end
		default:
			i++
		}
	}
	return true
}

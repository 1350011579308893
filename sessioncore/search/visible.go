package search

import (
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
)

// The visible text of an entry is defined in docs/design.md section 5, search/. It is found here member by member.

// maxContentDepth is how deep contents in contents are followed. A result in a message is 2 deep.
const maxContentDepth = 4

// messageTexts and blockTexts are the members that are texts, besides content.
var (
	messageTexts = []message.Key{message.Command, message.Code, message.Output, message.ErrorMessage,
		message.Summary, message.ShortSummary, message.ToolName, message.CustomType}
	blockTexts = []message.Key{message.Text, message.Thinking, message.Name, message.ToolName, message.Intent}
)

// reader takes an entry apart. Its functions return false once no more is asked for.
type reader struct {
	// text gets each piece of visible text: a string, or a number in arguments.
	text func(rawjson.Value) bool
	// tool gets the name of each tool that is called or has answered.
	tool func(rawjson.Value) bool
}

// entry reads an entry, and returns the role of its message, nil for other entries.
func (r *reader) entry(s *sessioncore.Snapshot, e sessioncore.Entry, text rawjson.Value) (role rawjson.Value) {
	switch s.Kind(e) {
	case sessioncore.TypeMessage:
		m := message.Read(s.Message(e, text))
		r.message(&m)
		return m[message.Role]
	case sessioncore.TypeCustomMessage, sessioncore.TypeCompaction, sessioncore.TypeBranchSummary:
		like := message.Read(text)
		r.message(&like)
	case sessioncore.TypeTitleChange, sessioncore.TypeSessionInfo:
		_ = r.string(text.Member("title")) && r.string(text.Member("name"))
	case sessioncore.TypeLabel:
		r.string(text.Member("label"))
	}
	return nil
}

func (r *reader) message(m *message.Members) {
	if !r.named(m[message.ToolName]) || !r.strings(m, messageTexts) {
		return
	}
	more := true
	m[message.Files].EachElement(func(file rawjson.Value, _ int) bool {
		more = r.string(file.Member("path")) && r.string(file.Member("content"))
		return more
	})
	if more {
		r.content(m[message.Content], 0)
	}
}

// named gives the name of a tool to tool, and string a string to text. Other values are neither.
func (r *reader) named(v rawjson.Value) bool  { return !v.IsString() || r.tool(v) }
func (r *reader) string(v rawjson.Value) bool { return !v.IsString() || r.text(v) }

func (r *reader) strings(m *message.Members, keys []message.Key) bool {
	for _, key := range keys {
		if !r.string(m[key]) {
			return false
		}
	}
	return true
}

// content reads the content of a message or block: a text, a block, or a list of these.
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
	b := message.Read(v)
	if !r.strings(&b, blockTexts) || b.Kind() == message.CallKind && !r.named(b[message.Name]) || !r.named(b[message.ToolName]) || !r.scalars(b[message.Arguments]) {
		return false
	}
	if depth == maxContentDepth {
		return true
	}
	return r.content(b[message.Content], depth+1) && (!b[message.Block].IsObject() || r.block(b[message.Block], depth+1))
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

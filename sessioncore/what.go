package sessioncore

import (
	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
)

// This file makes the word that stands in branches/…/path/ for what an entry is, so that a listing of the
// path reads like a table of contents (docs/design.md section 1, branches/).

// maxWhat is how long such a word may be, in bytes: it leaves the eye, and the 255 bytes that file systems
// allow, room for the id behind it.
const maxWhat = 40

// The roles of a tool's result in a message, as the dialects write them, and the word that both are shown
// as.
const (
	toolResultRole  = "toolResult"
	toolResultSnake = "tool_result"
)

// knownWhats are the words of known types, and of the roles that most messages have: made once for each
// session.
type knownWhats struct {
	types [len(typeNames)]symbol
	roles [RoleHookMessage + 1]symbol
}

// whatOf returns the word for an entry: the role of its message, "toolResult-<tool>" for a tool's result,
// else the text of its type; encoded as a name and cut.
func (x *index) whatOf(rec *record, u *jsonl.Unit) symbol {
	if rec.kind != TypeMessage || u.Info.Role.End == 0 {
		return x.whatOfType(rec.kind, u)
	}
	known := &x.whats.roles[rec.role]
	switch {
	case rec.role == RoleUser:
		return x.known(known, "user")
	case rec.role == RoleAssistant:
		return x.known(known, "assistant")
	case rec.flags&recMigrated != 0 && rec.role == RoleHookMessage:
		return x.known(known, "custom") // as its file shows it
	}
	role := u.Info.Role.Of(u.Text)
	if rec.role == RoleToolResult || role.Is(toolResultSnake) {
		if tool, ok := u.Info.Tool.Of(u.Text).Bytes(); ok && len(tool) > 0 {
			return x.what(toolResultRole+"-", tool)
		}
		return x.known(known, toolResultRole)
	}
	if text, ok := role.Bytes(); ok && len(text) > 0 {
		return x.what("", text)
	}
	return x.whatOfType(rec.kind, u)
}

// whatOfType returns the word for a type. What the model knows as one type has one text in a file.
func (x *index) whatOfType(kind EntryType, u *jsonl.Unit) symbol {
	known := &x.whats.types[kind]
	if kind == TypeUnknown || *known == 0 {
		text, _ := u.Info.Type.Of(u.Text).Bytes()
		*known = x.what("", text)
	}
	return *known
}

// known returns the word for the role that messages mostly have, made when first asked for.
func (x *index) known(known *symbol, role string) symbol {
	if *known == 0 {
		*known = x.symbols.intern([]byte(role))
	}
	return *known
}

// what returns the word for a text that begins with a plain prefix.
func (x *index) what(prefix string, text []byte) symbol {
	var buf [maxWhat]byte
	return x.symbols.intern(appendCutName(append(buf[:0], prefix...), text, maxWhat))
}

// appendCutName appends text encoded as a name (names.go) to the beginning of one, up to a limit in bytes
// that falls neither in a %XX nor in a character.
func appendCutName(dst, text []byte, limit int) []byte {
	if len(dst)+len(text) == 0 {
		return append(dst, '%') // the empty name
	}
	for len(text) > 0 {
		r, n := rawjson.DecodeRune(text)
		leading := len(dst) == 0 && (r == '.' || r == '-')
		if plainRune(r, n) && !leading {
			if len(dst)+n > limit {
				return dst
			}
			dst = append(dst, text[:n]...)
		} else {
			for i := range n {
				if len(dst)+len("%XX") > limit {
					return dst
				}
				dst = appendPercent(dst, string(text[i:i+1]))
			}
		}
		text = text[n:]
	}
	return dst
}

// What returns the word that branches/…/path/ has for what an entry is: the role of its message
// ("toolResult-<tool>" for a tool's result) or else the text of its type, encoded as a name and cut at 40
// bytes (docs/design.md, branches/).
func (s *Snapshot) What(e Entry) string { return string(s.symbols.text(s.records[e].what)) }

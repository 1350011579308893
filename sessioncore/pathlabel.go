package sessioncore

import (
	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/names"
)

// This file makes path labels: the part of a name in branches/…/path/ that says what the entry is, so that a
// listing of the path reads like a table of contents (docs/design.md section 1, branches/).

// maxPathLabel is the maximum length of a path label in bytes. It leaves room for the id after it, within the 255
// bytes that file systems allow, and keeps names readable.
const maxPathLabel = 40

// The roles of a tool result as the dialects write them. Both are shown as toolResult.
const (
	toolResultRole  = "toolResult"
	toolResultSnake = "tool_result"
)

// commonPathLabels caches the path labels of known types and of the most frequent roles. Each is made once per
// session.
type commonPathLabels struct {
	types [len(typeNames)]symbol
	roles [RoleSystem + 1]symbol
}

// pathLabelOf returns the path label of an entry: the role of its message, "toolResult-<tool>" for a tool result,
// otherwise the text of its type. The label is encoded as a name and cut at maxPathLabel.
func (x *index) pathLabelOf(rec *record, u *jsonl.Unit) symbol {
	if rec.kind != TypeMessage || u.Info.Role.End == 0 {
		return x.typePathLabel(rec.kind, u)
	}
	known := &x.pathLabels.roles[rec.role]
	switch {
	case rec.role == RoleUser:
		return x.commonPathLabel(known, "user")
	case rec.role == RoleAssistant:
		return x.commonPathLabel(known, "assistant")
	case rec.flags&recMigrated != 0 && rec.role == RoleHookMessage:
		return x.commonPathLabel(known, "custom") // as its file shows it
	}
	role := u.Info.Role.Of(u.Text)
	if rec.role == RoleToolResult || role.Is(toolResultSnake) {
		if tool, ok := u.Info.Tool.Of(u.Text).Bytes(); ok && len(tool) > 0 {
			return x.internPathLabel(toolResultRole+"-", tool)
		}
		return x.commonPathLabel(known, toolResultRole)
	}
	if text, ok := role.Bytes(); ok && len(text) > 0 {
		return x.internPathLabel("", text)
	}
	return x.typePathLabel(rec.kind, u)
}

// typePathLabel returns the path label for a type. A type that the model knows has one spelling per file.
func (x *index) typePathLabel(kind EntryType, u *jsonl.Unit) symbol {
	known := &x.pathLabels.types[kind]
	if kind == TypeUnknown || *known == 0 {
		text, _ := u.Info.Type.Of(u.Text).Bytes()
		*known = x.internPathLabel("", text)
	}
	return *known
}

// commonPathLabel returns the path label for a frequent role from its slot of the cache, which it fills on first
// use.
func (x *index) commonPathLabel(known *symbol, role string) symbol {
	if *known == 0 {
		*known = x.symbols.intern([]byte(role))
	}
	return *known
}

// internPathLabel returns the path label for text after a plain prefix.
func (x *index) internPathLabel(prefix string, text []byte) symbol {
	var buf [maxPathLabel]byte
	return x.symbols.intern(names.AppendCut(append(buf[:0], prefix...), text, maxPathLabel))
}

// PathLabel returns the part of a name in branches/…/path/ that says what the entry is: the role of its message
// ("toolResult-<tool>" for a tool result), otherwise the text of its type, encoded as a name and cut at 40 bytes
// (docs/design.md, branches/).
func (s *Snapshot) PathLabel(e Entry) string { return string(s.symbols.text(s.records[e].pathLabel)) }

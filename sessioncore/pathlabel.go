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

// pathLabelOf returns the path label of an entry: the role of its message, "toolResult-<tool>" for a tool result,
// otherwise the text of its type. The label is encoded as a name and cut at maxPathLabel.
func (x *index) pathLabelOf(rec *record, u *jsonl.Unit) symbol {
	var buf [maxPathLabel]byte
	label := buf[:0]
	role := u.Info.Role.Of(u.Text)
	text, _ := role.Bytes()
	switch {
	case rec.kind != TypeMessage || len(text) == 0:
		text, _ = u.Info.Type.Of(u.Text).Bytes()
	case rec.role == RoleHookMessage && rec.flags&recMigrated != 0:
		text = []byte("custom") // as its file shows it
	case rec.role == RoleToolResult || role.Is(toolResultSnake):
		text = []byte(toolResultRole)
		if tool, _ := u.Info.Tool.Of(u.Text).Bytes(); len(tool) > 0 {
			label, text = append(label, toolResultRole+"-"...), tool
		}
	}
	return x.symbols.intern(names.AppendCut(label, text, maxPathLabel))
}

// PathLabel returns the part of a name in branches/…/path/ that says what the entry is: the role of its message
// ("toolResult-<tool>" for a tool result), otherwise the text of its type, encoded as a name and cut at 40 bytes
// (docs/design.md, branches/).
func (s *Snapshot) PathLabel(e Entry) string { return string(s.symbols.text(s.records[e].pathLabel)) }

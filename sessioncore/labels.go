package sessioncore

import (
	"fmt"
	"slices"

	"sessionfs/sessioncore/internal/rawjson"
)

// Label is a label in effect. Its target need not be in the session.
type Label struct {
	Target string // id, WTF-8
	Label  string // WTF-8
}

// Labels returns the labels in effect, in the file order of the entries that set them. The last label entry of a
// target counts, wherever it is in the tree (docs/format.md, Loading).
func (s *Snapshot) Labels() []Label {
	s.labelOnce.Do(s.findLabels)
	return s.labels
}

// LabelOf returns the label in effect of an entry, "" for none.
func (s *Snapshot) LabelOf(e Entry) string {
	s.labelOnce.Do(s.findLabels)
	return s.labelOf[s.records[e].id]
}

// findLabels fills s.labels and s.labelOf.
func (s *Snapshot) findLabels() {
	s.labelOf = make(map[symbol]string)
	for _, l := range s.labelsInEffect() {
		s.labels = append(s.labels, Label{Target: s.idText(l.target), Label: l.label})
		s.labelOf[l.target] = l.label
	}
}

// labelsInEffect returns the label entries that are in effect, in file order.
func (s *Snapshot) labelsInEffect() []labelRecord {
	deciding := make(map[symbol]int, len(s.labelRecords))
	for i, l := range s.labelRecords {
		deciding[l.target] = i
	}
	var list []labelRecord
	for i, l := range s.labelRecords {
		if deciding[l.target] == i && l.label != "" {
			list = append(list, l)
		}
	}
	return list
}

// LabelsDocument returns the file labels: a line "<id>\t<label>" for each label in effect (docs/design.md section
// 2).
func (s *Snapshot) LabelsDocument() *Document {
	var out []byte
	for _, l := range s.Labels() {
		out = AppendLabelField(out, l.Target)
		out = append(out, '\t')
		out = AppendLabelField(out, l.Label)
		out = append(out, '\n')
	}
	return NewTextDocument(s, out)
}

// AppendLabelField appends text as a field of the file labels. It escapes backslashes, control characters and lone
// surrogates: those could break the line, could not be written back, or have an effect on a terminal.
func AppendLabelField(dst []byte, text string) []byte {
	for b := []byte(text); len(b) > 0; {
		r, n := rawjson.DecodeRune(b)
		if r == '\\' {
			dst = append(dst, `\\`...)
		} else {
			dst = appendVisibly(dst, r, b[:n])
		}
		b = b[n:]
	}
	return dst
}

// LabelOfID returns the label in effect of an id, which need not be that of an entry, "" for none.
func (s *Snapshot) LabelOfID(id string) string {
	target := s.symbols.find([]byte(id))
	if target == 0 {
		return ""
	}
	for i := len(s.labelRecords) - 1; i >= 0; i-- {
		if s.labelRecords[i].target == target {
			return s.labelRecords[i].label
		}
	}
	return ""
}

// LabelsInOrderSet returns the labels in effect in the order in which their targets got one, which is the order of
// the client's table. Clearing a label removes its target from the order.
func (s *Snapshot) LabelsInOrderSet() []Label {
	var order []Label
	at := map[symbol]int{}
	for _, l := range s.labelRecords {
		i, ok := at[l.target]
		switch {
		case l.label == "":
			if ok {
				order[i].Label = ""
				delete(at, l.target)
			}
		case ok:
			order[i].Label = l.label
		default:
			at[l.target] = len(order)
			order = append(order, Label{Target: s.idText(l.target), Label: l.label})
		}
	}
	return slices.DeleteFunc(order, func(l Label) bool { return l.Label == "" })
}

// appendVisibly appends the character r, whose encoding is text. Control characters and lone surrogates are
// escaped.
func appendVisibly(dst []byte, r rune, text []byte) []byte {
	switch {
	case r == '\t':
		return append(dst, `\t`...)
	case r == '\n':
		return append(dst, `\n`...)
	case r == '\r':
		return append(dst, `\r`...)
	case IsControl(r), rawjson.IsHighSurrogate(r), rawjson.IsLowSurrogate(r):
		return fmt.Appendf(dst, `\u%04x`, r)
	}
	return append(dst, text...)
}

// IsControl reports whether r is a C0 or C1 control character or DEL.
func IsControl(r rune) bool { return r < 0x20 || r >= 0x7F && r <= 0x9F }

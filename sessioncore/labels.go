package sessioncore

import (
	"slices"

	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/names"
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
	deciding := make(map[symbol]int, len(s.labelSets))
	for i, l := range s.labelSets {
		deciding[l.target] = i
	}
	var list []labelRecord
	for i, l := range s.labelSets {
		if deciding[l.target] == i && l.label != "" {
			list = append(list, l)
		}
	}
	return list
}

// LabelsDocument returns the file labels: a line "<id>\t<label>" for each label in effect (docs/design.md section
// 2).
func (s *Snapshot) LabelsDocument() *document.Document {
	var out []byte
	for _, l := range s.Labels() {
		out = names.AppendLabelField(out, l.Target)
		out = append(out, '\t')
		out = names.AppendLabelField(out, l.Label)
		out = append(out, '\n')
	}
	return document.OfText(s, out)
}

// LabelOfID returns the label in effect of an id, which need not be that of an entry, "" for none.
func (s *Snapshot) LabelOfID(id string) string {
	target := s.symbols.find([]byte(id))
	if target == 0 {
		return ""
	}
	for i := len(s.labelSets) - 1; i >= 0; i-- {
		if s.labelSets[i].target == target {
			return s.labelSets[i].label
		}
	}
	return ""
}

// LabelsInOrderSet returns the labels in effect in the order in which their targets got one, which is the order of
// the client's table. Clearing a label removes its target from the order.
func (s *Snapshot) LabelsInOrderSet() []Label {
	var order []Label
	at := map[symbol]int{}
	for _, l := range s.labelSets {
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

package sessioncore

import (
	"slices"
	"sync"

	"sessionfs/sessioncore/names"
)

// Label is a label in effect. Its target need not be in the session.
type Label struct {
	Target string // id, WTF-8
	Label  string // WTF-8; one of more than 4 KiB is cut, and ends in an ellipsis
	Set    Entry  // the entry that set it
	Place  int    // the order in the client's table: by the time of the target's first label since it was last cleared
	name   string // the file name of a label that is cut, "" for others
}

// FileName returns the file name of the label, with a hash of all of it where it is cut.
func (l Label) FileName() string {
	if l.name != "" {
		return l.name
	}
	return names.FileName(l.Label)
}

// labels are the labels in effect, found on first use.
type labels struct {
	once     sync.Once
	list     []Label
	byTarget map[string]Label
}

// Labels returns the labels in effect, in the file order of the entries that set them. The last
// label entry of a target counts, wherever it is in the tree (docs/format.md, Loading). Callers
// must not modify the slice.
func (s *Snapshot) Labels() []Label {
	s.labels.once.Do(s.findLabels)
	return s.labels.list
}

// LabelOf returns the label in effect of an id, "" for none. An entry of the id may be missing.
func (s *Snapshot) LabelOf(id string) string {
	s.labels.once.Do(s.findLabels)
	return s.labels.byTarget[id].Label
}

// WholeLabelOf is LabelOf with the end of a label that is cut, which it reads. Errors come from EntryText.
func (s *Snapshot) WholeLabelOf(id string) (string, error) {
	s.labels.once.Do(s.findLabels)
	label := s.labels.byTarget[id]
	if label.name == "" {
		return label.Label, nil
	}
	text, err := s.EntryText(label.Set)
	if err != nil {
		return "", err
	}
	return labelIn(text), nil
}

// findLabels fills s.labels, by applying the label entries in file order.
func (s *Snapshot) findLabels() {
	inEffect := map[symbol]Label{}
	for i, set := range s.labelSets {
		if set.label == "" {
			delete(inEffect, set.target)
			continue
		}
		place := i
		before, wasSet := inEffect[set.target]
		if wasSet {
			place = before.Place
		}
		inEffect[set.target] = Label{
			Target: s.idText(set.target),
			Label:  set.label,
			Set:    Entry(set.entry),
			Place:  place,
			name:   set.name,
		}
	}
	s.labels.byTarget = make(map[string]Label, len(inEffect))
	for _, label := range inEffect {
		s.labels.list = append(s.labels.list, label)
		s.labels.byTarget[label.Target] = label
	}
	slices.SortFunc(s.labels.list, func(a, b Label) int {
		return int(a.Set - b.Set)
	})
}

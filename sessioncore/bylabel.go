package sessioncore

import (
	"fmt"
	"sync"
	"time"

	"sessionfs/sessioncore/names"
)

// Labelled is a name in by-label/: a label that is in effect on an entry of the session.
type Labelled struct {
	Name  string
	Entry Entry
	Time  time.Time // when the label was set
}

// labelNames are the names in by-label/, made on first use.
type labelNames struct {
	once sync.Once
	list []Labelled
	at   map[string]int
}

// ByLabel returns the content of by-label/, in the order in which the labels were set. If entries have the same
// label, the name belongs to the one labelled last. Labels whose target is not in the file are left out.
func (s *Snapshot) ByLabel() []Labelled {
	s.byLabel.once.Do(s.nameLabels)
	return s.byLabel.list
}

// FindLabelName returns the element of ByLabel with that name. The error wraps ErrNotFound.
func (s *Snapshot) FindLabelName(name string) (Labelled, error) {
	s.byLabel.once.Do(s.nameLabels)
	if i, ok := s.byLabel.at[name]; ok {
		return s.byLabel.list[i], nil
	}
	return Labelled{}, fmt.Errorf("%w: no entry has the label %q", ErrNotFound, name)
}

// nameLabels fills s.byLabel.
func (s *Snapshot) nameLabels() {
	by := &s.byLabel
	by.at = map[string]int{}
	last := map[string]uint32{} // the label entry that set each label last
	inEffect := s.labelsInEffect()
	for _, l := range inEffect {
		if s.newest(l.target) != NoEntry {
			last[l.label] = l.entry
		}
	}
	for _, l := range inEffect {
		e := s.newest(l.target)
		if e == NoEntry || last[l.label] != l.entry {
			continue
		}
		name := names.FileName(l.label)
		by.at[name] = len(by.list)
		by.list = append(by.list, Labelled{name, e, s.Time(Entry(l.entry))})
	}
}

package report

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/names"
)

// Labels returns the file labels: a line "<id>\t<label>" for each label in effect (docs/design.md
// section 2).
func Labels(s *sessioncore.Snapshot) (*document.Document, error) {
	var out []byte
	for _, l := range s.Labels() {
		err := s.Confirm(context.Background(), l.Set)
		if err != nil {
			return nil, err
		}
		out = names.AppendLabelFields(out, l.Target, l.Label)
	}
	return document.OfText(s, out), nil
}

// Labelled is a name in by-label/: a label that is in effect on an entry of the session.
type Labelled struct {
	Name  string
	Entry sessioncore.Entry
	Time  time.Time         // when the label was set
	set   sessioncore.Entry // the entry that set it
}

// ByLabel returns the content of by-label/, in the order of the entries that set the labels. A label of
// several entries names the last one. Labels of entries that are not in the file are left out.
func ByLabel(s *sessioncore.Snapshot) []Labelled {
	var list []Labelled
	seen := map[string]bool{}
	for _, l := range slices.Backward(s.Labels()) { // so that the last of a name is the first to come
		e, err := s.Find(l.Target)
		name := l.FileName()
		if err == nil && !seen[name] {
			seen[name] = true
			list = append(list, Labelled{
				Name:  name,
				Entry: e,
				Time:  s.Time(l.Set),
				set:   l.Set,
			})
		}
	}
	slices.Reverse(list)
	return list
}

// FindByLabel returns the element of ByLabel with that name, which is confirmed. The error wraps
// sessioncore.ErrNotFound, or is one of Snapshot.Confirm.
func FindByLabel(s *sessioncore.Snapshot, name string) (Labelled, error) {
	for _, l := range slices.Backward(ByLabel(s)) {
		if l.Name == name {
			return l, s.Confirm(context.Background(), l.Entry, l.set)
		}
	}
	return Labelled{}, fmt.Errorf("%w: no entry has the label %q", sessioncore.ErrNotFound, name)
}

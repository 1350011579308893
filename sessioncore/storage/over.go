package storage

import (
	"errors"
	"regexp"
)

// over shows a store, and behind it what another one has more.
type over struct{ front, back Files }

var _ Files = (*over)(nil)

// Over returns the Files of front with those of back that front has not, and no versions of back:
// names such as X.1.jsonl, which stand beside X.jsonl.
func Over(front, back Files) Files { return &over{front, back} }

var version = regexp.MustCompile(`\.[0-9]+\.[a-z]+$`)

// List implements Files.
func (s *over) List(dir string, only []string, f func(Item) bool) error {
	if only != nil {
		return ListOnly(s, dir, only, f)
	}
	seen, goesOn := map[string]bool{}, true
	missing := s.front.List(dir, nil, func(it Item) bool {
		seen[it.Name] = true
		goesOn = f(it)
		return goesOn
	})
	if !goesOn || missing != nil && !IsMissing(missing) {
		return missing
	}
	err := s.back.List(dir, nil, func(it Item) bool {
		return seen[it.Name] || version.MatchString(it.Name) || f(it)
	})
	if IsMissing(err) {
		return missing
	}
	return err
}

// Stat implements Files. A directory of both has the times of the one that was changed
// last.
func (s *over) Stat(name string) (Stat, error) {
	st, err := s.front.Stat(name)
	switch {
	case err == nil && st.Kind == KindDir:
		if other, err := s.back.Stat(name); err == nil {
			st.Modified, st.Changed = max(st.Modified, other.Modified), max(st.Changed, other.Changed)
		}
	case IsMissing(err):
		if other, backErr := s.back.Stat(name); backErr == nil {
			return other, nil
		}
	}
	return st, err
}

// Open implements Files.
func (s *over) Open(name string) (Object, error) {
	obj, err := s.front.Open(name)
	if IsMissing(err) {
		if kept, backErr := s.back.Open(name); backErr == nil {
			return kept, nil
		} else if !IsMissing(backErr) {
			return nil, errors.Join(err, backErr)
		}
	}
	return obj, err
}

// ReadAhead implements Files.
func (s *over) ReadAhead(names []string) { s.front.ReadAhead(names) }

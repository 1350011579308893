package storage

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// over shows a store, and behind it the names that only another one has.
type over struct{ front, back Files }

var _ Files = (*over)(nil)

// Over returns the Files of front with the names that only back has. Of versions in back, as
// X.1.jsonl is one of X.jsonl, that name shows the last one.
func Over(front, back Files) Files { return &over{front, back} }

// version matches the end of the name of a version.
var version = regexp.MustCompile(`\.[0-9]+\.[a-z]+$`)

// List implements Files.
func (s *over) List(dir string, only []string, f func(Item) bool) error {
	if only != nil {
		return ListOnly(s, dir, only, f)
	}
	isListed := map[string]bool{}
	goesOn := true
	frontErr := s.front.List(dir, nil, func(item Item) bool {
		isListed[item.Name] = true
		goesOn = f(item)
		return goesOn
	})
	hasFailed := frontErr != nil && !IsMissing(frontErr)
	if !goesOn || hasFailed {
		return frontErr
	}
	err := s.back.List(dir, nil, func(item Item) bool {
		if isListed[item.Name] || version.MatchString(item.Name) {
			return true
		}
		item.State = func() (Stat, error) {
			_, st, err := s.last(path.Join(dir, item.Name))
			return st, err
		}
		return f(item)
	})
	if IsMissing(err) {
		return frontErr // which is fs.ErrNotExist too if neither store has the directory
	}
	return err
}

// Stat implements Files. A directory of both has the times of the one that was changed
// last.
func (s *over) Stat(name string) (Stat, error) {
	st, err := s.front.Stat(name)
	if IsMissing(err) {
		_, other, backErr := s.last(name)
		if backErr == nil {
			return other, nil
		}
	}
	if err != nil || st.Kind != KindDir {
		return st, err
	}
	other, err := s.back.Stat(name)
	if err == nil {
		st.Modified = max(st.Modified, other.Modified)
		st.Changed = max(st.Changed, other.Changed)
	}
	return st, nil
}

// last returns the version of a name in back that was modified last: X.jsonl, X.1.jsonl, X.2.jsonl and so on up to
// the first one that is missing. A version that ends where an earlier one goes on does not count.
func (s *over) last(name string) (last string, st Stat, err error) {
	last = name
	st, err = s.back.Stat(name)
	if err != nil || st.Kind != KindFile {
		return last, st, err
	}
	ext := path.Ext(name)
	base := strings.TrimSuffix(name, ext)
	number := 0
	for {
		number++
		version := fmt.Sprintf("%s.%d%s", base, number, ext)
		other, err := s.back.Stat(version)
		if err != nil || other.Kind != KindFile {
			return last, st, nil
		}
		if other.Modified >= st.Modified && !s.isCut(version, other.Size, last) {
			last = version
			st = other
		}
	}
}

// isCut reports whether a version of a size ends as another one goes on, by the last bytes of the size. It is false if one of
// them cannot be read.
func (s *over) isCut(name string, size int64, other string) bool {
	a, err := s.back.Open(name)
	if err != nil {
		return false
	}
	defer a.Close()
	b, err := s.back.Open(other)
	if err != nil {
		return false
	}
	defer b.Close()
	end := min(size, compareSize)
	same, _ := SameBytes(a, size-end, b, size-end, end)
	return same
}

// Open implements Files.
func (s *over) Open(name string) (Object, error) {
	obj, err := s.front.Open(name)
	if IsMissing(err) {
		last, _, _ := s.last(name)
		kept, backErr := s.back.Open(last)
		if backErr == nil {
			return kept, nil
		}
		if !IsMissing(backErr) {
			return nil, errors.Join(err, backErr)
		}
	}
	return obj, err
}

// ReadAhead implements Files.
func (s *over) ReadAhead(names []string) { s.front.ReadAhead(names) }

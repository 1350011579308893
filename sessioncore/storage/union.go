package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// Part is a store and the name below which it is shown.
type Part struct {
	Name  string
	Files Files
}

// union shows parts. Its root has a directory for each, and the names in a part stand behind the
// part's name.
type union struct{ parts []Part }

var _ Files = (*union)(nil)

// Union returns the Files of parts with different names.
func Union(parts ...Part) Files { return &union{parts} }

// find returns the part that a name lies in and its name there. The error wraps fs.ErrNotExist if no part has the name.
func (s *union) find(name string) (*Part, string, error) {
	top, rest, _ := strings.Cut(name, "/")
	for i := range s.parts {
		part := &s.parts[i]
		if part.Name == top {
			return part, rest, nil
		}
	}
	return nil, "", fmt.Errorf("%w: %q", fs.ErrNotExist, name)
}

// List implements Files.
func (s *union) List(dir string, only []string, f func(Item) bool) error {
	if dir != "" {
		p, rest, err := s.find(dir)
		if err != nil {
			return err
		}
		return p.Files.List(rest, only, f)
	}
	if only != nil {
		return ListOnly(s, dir, only, f)
	}
	for _, p := range s.parts {
		if !f(Item{Name: p.Name, Kind: KindDir, State: p.state}) {
			break
		}
	}
	return nil
}

// state returns the state of a part's directory: one that lets nobody in where this user may not
// look, so that the others are listed.
func (p *Part) state() (Stat, error) {
	st, err := p.Files.Stat("")
	if errors.Is(err, fs.ErrPermission) {
		return Stat{Kind: KindDir}, nil
	}
	return st, err
}

// Stat implements Files.
func (s *union) Stat(name string) (Stat, error) {
	if name == "" {
		return s.statRoot()
	}
	p, rest, err := s.find(name)
	if err != nil {
		return Stat{}, err
	}
	return p.Files.Stat(rest)
}

// statRoot returns the state of the root. It changed when a part did last, and has the owner of the
// first part and its mode, but is never closed to its owner. A part with an error does
// not count, unless that is true of all parts.
func (s *union) statRoot() (Stat, error) {
	all := Stat{Kind: KindDir, Mode: DirMode}
	var refused error
	found := false
	for _, p := range s.parts {
		st, err := p.Files.Stat("")
		if err != nil {
			if !IsMissing(err) {
				refused = err
			}
			continue
		}
		if !found {
			all.UID = st.UID
			all.GID = st.GID
			all.Mode = st.Mode | DirMode
		}
		found = true
		all.Inode = all.Inode*31 + st.Inode
		all.Modified = max(all.Modified, st.Modified)
		all.Changed = max(all.Changed, st.Changed)
	}
	if !found && refused != nil {
		return Stat{}, refused
	}
	return all, nil
}

// Open implements Files.
func (s *union) Open(name string) (Object, error) {
	p, rest, err := s.find(name)
	if err != nil {
		return nil, err
	}
	return p.Files.Open(rest)
}

// ReadAhead implements Files.
func (s *union) ReadAhead(names []string) {
	for _, p := range s.parts {
		var own []string
		for _, name := range names {
			rest, ok := strings.CutPrefix(name, p.Name+"/")
			if ok {
				own = append(own, rest)
			}
		}
		if len(own) > 0 {
			p.Files.ReadAhead(own)
		}
	}
}

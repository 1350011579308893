package redact

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"

	"sessionfs/sessioncore/internal/secrets"
	"sessionfs/sessioncore/storage"
)

// Storage shows the files of another storage with their secrets masked (docs/design.md section 8, Redacted mounts).
type Storage struct {
	files storage.Files
	rules *secrets.Rules

	mu     sync.Mutex // guards the fields below
	masks  map[object]*mask
	places int // in all of them, when each was last looked at

	maxPlaces int // maxKept, but in tests
}

// object identifies a file.
type object struct{ device, inode uint64 }

const (
	// maxMasks is the maximum number of files whose masks are kept, and maxKept that of places in them, 100 bytes each.
	// Beyond that a file is searched again.
	maxMasks = 4096
	maxKept  = 200_000
)

var _ storage.Files = (*Storage)(nil)

// Rules are what secrets are known by.
type Rules = secrets.Rules

// ReadRules returns the rules of the program and those of a file in the format of gitleaks, if its name is not "".
func ReadRules(name string) (*Rules, error) { return secrets.Read(name) }

// New returns a Storage that shows files. Secrets are masked that rules know.
func New(files storage.Files, rules *Rules) *Storage {
	return &Storage{files: files, rules: rules, masks: map[object]*mask{}, maxPlaces: maxKept}
}

// ending is the suffix of the names of files that can be masked.
const ending = ".jsonl"

// hidden reports whether a path is not shown: a part of it is a secret, or the id in the name of a session's file.
func (s *Storage) hidden(name string) bool {
	_, id, _ := strings.Cut(path.Base(name), "_") // rules take no secret out of the middle of a word
	return name != "" && s.rules.In(name+"\n"+id)
}

// shown returns the state of a name as it is shown, the zero Stat if it is not.
func (s *Storage) shown(name string, st storage.Stat) storage.Stat {
	switch {
	case st.Kind == storage.KindLink || s.hidden(name):
		return storage.Stat{}
	case st.Kind == storage.KindFile && !strings.HasSuffix(name, ending):
		st.Mode = 0
	}
	return st
}

func missing(name string) error { return fmt.Errorf("%w: %q", fs.ErrNotExist, name) }

// List implements storage.Files.
func (s *Storage) List(dir string, only []string, f func(storage.Item) bool) error {
	if s.hidden(dir) {
		return missing("a name with a secret")
	}
	return s.files.List(dir, only, func(item storage.Item) bool {
		name := path.Join(dir, item.Name)
		if item.Kind == storage.KindLink || s.hidden(name) {
			return true
		}
		state := item.State
		item.State = func() (storage.Stat, error) {
			st, err := state()
			return s.shown(name, st), err
		}
		return f(item)
	})
}

// ReadAhead implements storage.Files.
func (s *Storage) ReadAhead(names []string) { s.files.ReadAhead(names) }

// Stat implements storage.Files. The kind and size of a file are told without searching it.
func (s *Storage) Stat(name string) (storage.Stat, error) {
	st, err := s.files.Stat(name)
	if err != nil {
		return storage.Stat{}, err
	}
	if st = s.shown(name, st); st == (storage.Stat{}) {
		return st, missing("a name with a secret, or a link")
	}
	return st, nil
}

// Open implements storage.Files. The file is searched; that takes as long as reading it and more.
func (s *Storage) Open(name string) (storage.Object, error) {
	if err := storage.CheckName(name); err != nil {
		return nil, err
	}
	if s.hidden(name) {
		return nil, missing("a name with a secret")
	}
	if !strings.HasSuffix(name, ending) {
		return nil, fmt.Errorf("%w: secrets can be masked in session files alone", fs.ErrPermission)
	}
	obj, err := s.files.Open(name)
	if err != nil {
		return nil, err
	}
	o := &masked{obj: obj, rules: s.rules}
	if o.mask, err = s.maskOf(obj); err == nil {
		o.version, err = o.mask.current(obj, s.rules)
	}
	if err != nil {
		_ = obj.Close()
		return nil, err
	}
	s.keep(o.mask)
	return o, nil
}

// maskOf returns the mask of a file, which may not be up to date.
func (s *Storage) maskOf(obj storage.Object) (*mask, error) {
	st, err := obj.Stat()
	if err != nil {
		return nil, err
	}
	id := object{st.Device, st.Inode}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.masks[id]
	if m == nil {
		m = &mask{id: id}
		s.masks[id] = m
	}
	return m, nil
}

// keep counts the places of a mask, and forgets others if there are too many.
func (s *Storage) keep(m *mask) {
	places := m.count()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places += places - m.counted
	m.counted = places
	for id, other := range s.masks {
		if len(s.masks) <= maxMasks && s.places <= s.maxPlaces {
			break
		}
		if other != m {
			s.places -= other.counted
			other.counted = 0
			delete(s.masks, id)
		}
	}
}

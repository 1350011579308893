package secrets

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"

	"sessionfs/sessioncore/storage"
)

// Masked are the files of another storage with their secrets masked (docs/design.md section 8).
type Masked struct {
	files storage.Files
	rules *Rules

	mu     sync.Mutex // guards the fields below
	masks  map[fileID]*mask
	places int // in all masks, as of the last keep of each

	maxPlaces int // maxKept, but in tests
}

// fileID identifies a file.
type fileID struct{ device, inode uint64 }

const (
	// maxMasks bounds the files with masks that are kept, and maxKept the places in them, 100 bytes
	// each. Other files are searched again.
	maxMasks = 4096
	maxKept  = 200_000
)

var _ storage.Files = (*Masked)(nil)

// Mask returns files with the secrets masked that rules find.
func Mask(files storage.Files, rules *Rules) *Masked {
	return &Masked{
		files:     files,
		rules:     rules,
		masks:     map[fileID]*mask{},
		maxPlaces: maxKept,
	}
}

// ending is the suffix of the names of files that can be masked.
const ending = ".jsonl"

// hidden reports whether a path is hidden: a part of it, or the id in a session's file name, is a
// secret. The root, "", never is.
func (s *Masked) hidden(name string) bool {
	if name == "" {
		return false
	}
	_, id, _ := strings.Cut(path.Base(name), "_") // rules find no secret in the middle of a word
	return s.rules.In(name + "\n" + id)
}

// shown returns the state to show for a name with the state st: the zero Stat for a hidden one, or for a link. A
// file that cannot be masked has no mode, so that nobody opens it.
func (s *Masked) shown(name string, st storage.Stat) storage.Stat {
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
func (s *Masked) List(dir string, only []string, f func(storage.Item) bool) error {
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
func (s *Masked) ReadAhead(names []string) { s.files.ReadAhead(names) }

// Stat implements storage.Files. It does not search the file.
func (s *Masked) Stat(name string) (storage.Stat, error) {
	st, err := s.files.Stat(name)
	if err != nil {
		return storage.Stat{}, err
	}
	st = s.shown(name, st)
	if st == (storage.Stat{}) {
		return st, missing("a name with a secret, or a link")
	}
	return st, nil
}

// Open implements storage.Files. It searches the file, which takes longer than reading it. The error is
// fs.ErrNotExist for a hidden name, and fs.ErrPermission for a file that cannot be masked.
func (s *Masked) Open(name string) (storage.Object, error) {
	err := storage.CheckName(name)
	if err != nil {
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
	o := &maskedObject{obj: obj, rules: s.rules}
	o.mask, err = s.maskOf(obj)
	if err == nil {
		o.version, err = o.mask.current(obj, s.rules)
	}
	if err != nil {
		_ = obj.Close()
		return nil, err
	}
	s.keep(o.mask)
	return o, nil
}

// MaskObject returns an open session file with the secrets masked that rules know. It searches the file. Closing
// the result closes obj; after an error the caller must close obj.
func MaskObject(obj storage.Object, rules *Rules) (storage.Object, error) {
	m := &mask{}
	version, err := m.current(obj, rules)
	o := &maskedObject{
		obj:     obj,
		mask:    m,
		rules:   rules,
		version: version,
	}
	return o, err
}

// maskOf returns the kept mask of a file, which may be out of date, or a new one.
func (s *Masked) maskOf(obj storage.Object) (*mask, error) {
	st, err := obj.Stat()
	if err != nil {
		return nil, err
	}
	id := fileID{device: st.Device, inode: st.Inode}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.masks[id]
	if m == nil {
		m = &mask{id: id}
		s.masks[id] = m
	}
	return m, nil
}

// keep counts the places of a mask, and evicts others while the masks exceed the bounds. Open files go on with
// an evicted mask.
func (s *Masked) keep(m *mask) {
	m.mu.Lock()
	places := len(m.places)
	m.mu.Unlock()
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

package gzip

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/storage"
)

const (
	// Ending is what a compressed file's name has after that of the session file.
	Ending = ".gz"
	// session ends the names of files that are looked for under their compressed name too.
	session = ".jsonl"
)

// Storage shows the files of another storage. A session file that is there only with Ending after its name is shown
// unpacked. The compressed file itself is not shown.
type Storage struct {
	storage.Unsupported
	files storage.Storage
	cache *cache

	mu    sync.Mutex // guards sizes
	sizes map[string]measured
}

var _ storage.Storage = (*Storage)(nil)

// measured is what is known of a compressed file in one state.
type measured struct {
	token storage.Token // of the compressed file
	size  int64         // unpacked
	exact bool          // it was unpacked; otherwise size is what the file says
	err   error         // why it cannot be unpacked to its end
}

// maxMeasured is the maximum number of files of which the size is kept. Beyond that all are forgotten: it is read again
// from the end of each file.
const maxMeasured = 1 << 14

// New returns a Storage that shows files. What it keeps in memory is a part of limit, which may be nil; what is too large
// for that goes to files without a name in the directory temporary.
func New(files storage.Storage, limit *budget.Budget, temporary string) *Storage {
	return &Storage{files: files, cache: newCache(limit, temporary), sizes: map[string]measured{}}
}

// Close gives back what was unpacked.
func (s *Storage) Close() { s.cache.forgetUnused(0) }

// find returns the state of what a name stands for, the name of the file behind it, and whether that is compressed.
func (s *Storage) find(name string) (st storage.Stat, file string, packed bool, err error) {
	st, err = s.files.Stat(name)
	if !storage.IsMissing(err) || !strings.HasSuffix(name, session) {
		return st, name, false, err
	}
	at, missing := s.files.Stat(name + Ending)
	if missing != nil || at.Kind != storage.KindFile {
		return st, name, false, err
	}
	return at, name + Ending, true, nil
}

// Stat implements storage.Storage. A compressed file has the size that it says its content has, until that is known to be
// wrong.
func (s *Storage) Stat(name string) (storage.Stat, error) {
	st, file, packed, err := s.find(name)
	if err == nil && packed {
		st.Size = s.measure(file, st, nil).size
	}
	return st, err
}

// measure returns what is known of a compressed file in a state. obj is the open file, nil if it is to be opened.
func (s *Storage) measure(file string, st storage.Stat, obj storage.Object) measured {
	s.mu.Lock()
	known, ok := s.sizes[file]
	s.mu.Unlock()
	if ok && known.token == st.Token {
		return known
	}
	if obj == nil {
		var err error
		if obj, err = s.files.Open(file); err != nil {
			return measured{token: st.Token} // opening it will say why
		}
		defer obj.Close()
	}
	m := measured{token: st.Token}
	var end [trailer]byte
	if err := storage.ReadFull(obj, end[:], max(st.Size-trailer, 0)); err == nil {
		m.size = int64(binary.LittleEndian.Uint32(end[trailer-4:]))
	}
	s.note(file, m)
	return m
}

// trailer is how many bytes follow the compressed data: a checksum and the size.
const trailer = 8

func (s *Storage) note(file string, m measured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sizes[file] == m {
		return
	}
	if len(s.sizes) >= maxMeasured {
		clear(s.sizes)
	}
	s.sizes[file] = m
}

// Open implements storage.Storage. The file is not unpacked yet, unless what it says of its size cannot be.
func (s *Storage) Open(name string) (storage.Object, error) {
	obj, err := s.files.Open(name)
	if !storage.IsMissing(err) || !strings.HasSuffix(name, session) {
		return obj, err
	}
	packed, missing := s.files.Open(name + Ending)
	if missing != nil {
		if storage.IsMissing(missing) {
			return nil, err
		}
		return nil, missing
	}
	return s.unpacked(name+Ending, packed)
}

// unpacked returns the object that shows a compressed one, which it closes.
func (s *Storage) unpacked(file string, obj storage.Object) (storage.Object, error) {
	st, err := obj.Stat()
	if err == nil {
		var magic [len(member)]byte
		if n, _ := obj.ReadAt(magic[:], 0); n < len(magic) || string(magic[:]) != member {
			err = fmt.Errorf("%w: %s is not compressed by gzip", storage.ErrNotRegular, file)
		}
	}
	if err != nil {
		_ = obj.Close()
		return nil, err
	}
	o := &object{storage: s, obj: obj, file: file, known: s.measure(file, st, obj)}
	// Text becomes smaller when it is compressed.
	if m := o.known; !m.exact && m.err == nil && (m.size < st.Size || m.size > s.cache.limitOf(st.Size)) {
		s.cache.with(st.Token, obj, func(c *content) { o.known, err = s.learn(file, c) })
		if err != nil && o.known.err == nil {
			_ = obj.Close()
			return nil, err
		}
	}
	return o, nil
}

// learn notes what is known of a file since it was unpacked, unless that failed for a reason that can pass, and returns
// that with the error. What is damaged has a byte more than can be read, which is the error.
func (s *Storage) learn(file string, c *content) (measured, error) {
	m := measured{token: c.token, size: c.size, exact: c.err == nil}
	var broken *brokenError
	if errors.As(c.err, &broken) {
		m.size, m.err = m.size+1, c.err
	}
	if m.exact || m.err != nil {
		s.note(file, m)
	}
	return m, c.err
}

// List implements storage.Storage.
func (s *Storage) List(dir string) ([]storage.Item, error) {
	items, err := s.files.List(dir)
	if err != nil {
		return nil, err
	}
	plain := make(map[string]bool, len(items))
	for _, item := range items {
		plain[item.Name] = true
	}
	shown := items[:0]
	for _, item := range items {
		if name, ok := shownAs(item); ok {
			if plain[name] {
				continue
			}
			item.Name = name
		}
		shown = append(shown, item)
	}
	slices.SortFunc(shown, func(a, b storage.Item) int { return strings.Compare(a.Name, b.Name) })
	return shown, nil
}

// shownAs returns the name under which a compressed session file is shown; ok is false for others.
func shownAs(item storage.Item) (name string, ok bool) {
	name, ok = strings.CutSuffix(item.Name, Ending)
	return name, ok && item.Kind == storage.KindFile && strings.HasSuffix(name, session)
}

// Each implements storage.Storage. A file that is there twice, also uncompressed, comes twice.
func (s *Storage) Each(dir string, f func(storage.Item) bool) error {
	return s.files.Each(dir, func(item storage.Item) bool {
		if name, ok := shownAs(item); ok {
			item.Name = name
		}
		return f(item)
	})
}

// ListStat implements storage.Storage.
func (s *Storage) ListStat(dir string, want func(storage.Item) bool) ([]storage.StatItem, error) {
	found, err := storage.ListStat(s.files, dir, func(item storage.Item) bool {
		if name, ok := shownAs(item); ok {
			item.Name = name
		}
		return want(item)
	})
	if err != nil {
		return nil, err
	}
	plain := make(map[string]bool, len(found))
	for _, item := range found {
		plain[item.Name] = true
	}
	shown := found[:0]
	for _, item := range found {
		if name, ok := shownAs(storage.Item{Name: item.Name, Kind: item.Kind}); ok {
			if plain[name] {
				continue
			}
			item.Size = s.measure(path.Join(dir, item.Name), item.Stat, nil).size
			item.Name = name
		}
		shown = append(shown, item)
	}
	return shown, nil
}

// StatNames implements storage.Storage.
func (s *Storage) StatNames(dir string, names []string, f func(i int, st storage.Stat)) error {
	both := make([]string, 0, 2*len(names))
	for _, name := range names {
		both = append(both, name, name+Ending)
	}
	var plain storage.Stat
	return storage.StatNames(s.files, dir, both, func(i int, st storage.Stat) {
		if i%2 == 0 {
			plain = st
			return
		}
		if plain == (storage.Stat{}) && st.Kind == storage.KindFile && strings.HasSuffix(names[i/2], session) {
			plain = st
			plain.Size = s.measure(path.Join(dir, both[i]), st, nil).size
		}
		f(i/2, plain)
	})
}

// Readlink implements storage.Storage.
func (s *Storage) Readlink(name string) (string, error) { return s.files.Readlink(name) }

// Append implements storage.Storage.
func (s *Storage) Append(string, []byte) (storage.Stat, error) { return storage.Stat{}, errReadOnly }

// Replace implements storage.Storage.
func (s *Storage) Replace(string, storage.Token, func(io.Writer) error) (storage.Stat, error) {
	return storage.Stat{}, errReadOnly
}

// Sync implements storage.Storage.
func (s *Storage) Sync(string) error { return errReadOnly }

// Lock implements storage.Storage.
func (s *Storage) Lock(context.Context, string) (func() error, error) { return nil, errReadOnly }

// errReadOnly is the error of everything that writes.
var errReadOnly = fmt.Errorf("%w: compressed files are only read", storage.ErrUnsupported)

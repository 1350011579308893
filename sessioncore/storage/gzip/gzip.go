package gzip

import (
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/storage"
)

const (
	// Ending ends the names of files that gzip compressed, after the session file's name.
	Ending = ".gz"
	// ZstdEnding does so for zstd.
	ZstdEnding = ".zst"
	// sessionEnding ends the names that may have a compressed file.
	sessionEnding = ".jsonl"
)

// Storage shows the files of another storage. A session file that exists only in compressed form
// appears without the ending of its format.
type Storage struct {
	files   storage.Files
	format  *format
	limitOf func(int64) int64 // format.limitOf, except in tests
	turns   chan struct{}     // has a value for each file that is being unpacked
	texts   budget.Room
	sizes   *lru.Cache[string, measurement]

	mu       sync.Mutex // guards unpacked
	unpacked map[*object]struct{}
}

var _ storage.Files = (*Storage)(nil)

// measurement is the size of a compressed file in one state.
type measurement struct {
	token storage.Token // of the compressed file
	size  int64         // unpacked
	exact bool          // from unpacking; otherwise the file's own figure
	err   error         // the damage of the file, or nil
}

const (
	// maxMeasured bounds the cached sizes. Others are read from the end of each file.
	maxMeasured = 1 << 14
	// atOnce bounds the files being unpacked. Each one may take maxInMemory.
	atOnce = 2
)

// New returns a Storage that shows files, some of them compressed by gzip. Unpacked texts are kept
// in memory within limit, nil for a default one, else in nameless files in the directory temporary.
func New(files storage.Files, limit *budget.Budget, temporary string) *Storage {
	return newStorage(files, gzipped, limit, temporary)
}

// NewZstd is New for files that zstd compressed.
func NewZstd(files storage.Files, limit *budget.Budget, temporary string) *Storage {
	return newStorage(files, zstandard, limit, temporary)
}

// newStorage returns a storage of the compressed files of a format. limit is nil for a budget of its
// own.
func newStorage(files storage.Files, format *format, limit *budget.Budget, temporary string) *Storage {
	if limit == nil {
		limit = budget.New(budget.Default)
	}
	s := &Storage{
		files:   files,
		format:  format,
		limitOf: format.limitOf,
		turns:   make(chan struct{}, atOnce),
		texts: budget.Room{
			Limit:  limit,
			Memory: limit.Kept(),
			Most:   maxInMemory,
			Dir:    temporary,
		},
		unpacked: map[*object]struct{}{},
	}
	s.sizes, _ = lru.New[string, measurement](maxMeasured)
	limit.OnFull(s.evict)
	return s
}

// Stat implements storage.Files. The size of a compressed file is the one that it states, until
// that is known to be wrong.
func (s *Storage) Stat(name string) (storage.Stat, error) {
	st, err := s.files.Stat(name)
	if !storage.IsMissing(err) || !strings.HasSuffix(name, sessionEnding) {
		return st, err
	}
	file := name + s.format.ending
	packed, missing := s.files.Stat(file)
	if missing != nil || packed.Kind != storage.KindFile {
		return st, err
	}
	packed.Size = s.measure(file, packed, nil).size
	return packed, nil
}

// measure returns the size of a compressed file in the state st, and unpacks it if it states none.
// obj is the open file, or nil; then measure opens it, and after an error the size is 0.
func (s *Storage) measure(file string, st storage.Stat, obj storage.Object) measurement {
	known, ok := s.sizes.Get(file)
	if ok && known.token == st.Token {
		return known
	}
	if obj == nil {
		var err error
		obj, err = s.files.Open(file)
		if err != nil {
			return measurement{token: st.Token} // Open reports the error
		}
		defer obj.Close()
	}
	size, isStated := s.format.sizeOf(obj, st.Size)
	if isStated {
		m := measurement{token: st.Token, size: size}
		s.sizes.Add(file, m)
		return m
	}
	s.turns <- struct{}{}
	defer func() { <-s.turns }()
	size, err := s.unpackTo(io.Discard, obj, st.Token)
	return s.learn(file, st.Token, size, err)
}

// unpackTo writes the text of a compressed file to out, up to its limit.
func (s *Storage) unpackTo(out io.Writer, obj storage.Object, token storage.Token) (size int64, err error) {
	return s.format.unpackTo(out, obj, token, s.limitOf(token.Size))
}

// unpackTo writes the text of a compressed file to out, up to a limit.
func (f *format) unpackTo(out io.Writer, obj storage.Object, token storage.Token, limit int64) (size int64, err error) {
	err = f.unpack(obj, token, func(in io.Reader) (err error) {
		size, err = io.Copy(out, io.LimitReader(in, limit+1))
		if err == nil && size > limit {
			err = tooLarge(token.Size, limit)
		}
		return err
	})
	return size, err
}

// Open implements storage.Files. It does not unpack a compressed file unless the stated size is
// impossible.
func (s *Storage) Open(name string) (storage.Object, error) {
	obj, err := s.files.Open(name)
	if !storage.IsMissing(err) || !strings.HasSuffix(name, sessionEnding) {
		return obj, err
	}
	packed, missing := s.files.Open(name + s.format.ending)
	if missing != nil {
		if storage.IsMissing(missing) {
			return nil, err
		}
		return nil, missing
	}
	return s.openPacked(name+s.format.ending, packed)
}

// openPacked returns the object of a compressed file, and takes over obj.
func (s *Storage) openPacked(file string, obj storage.Object) (storage.Object, error) {
	st, err := obj.Stat()
	if err == nil {
		err = s.format.check(file, obj)
	}
	if err != nil {
		_ = obj.Close()
		return nil, err
	}
	o := &object{
		storage: s,
		obj:     obj,
		file:    file,
		known:   s.measure(file, st, obj),
	}
	// Text shrinks in compression, and no file grows beyond its limit: another size is not true.
	m := o.known
	isLikely := st.Size <= m.size && m.size <= s.limitOf(st.Size)
	isStated := !m.exact && m.err == nil
	if isStated && !isLikely {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.known, err = o.unpack()
		if err != nil && o.known.err == nil {
			_ = obj.Close()
			return nil, err
		}
	}
	return o, nil
}

// check refuses a file that is not compressed in the format.
func (f *format) check(file string, obj storage.Object) error {
	magic := make([]byte, len(f.magic))
	n, _ := obj.ReadAt(magic, 0)
	if n < len(magic) || string(magic) != f.magic {
		return fmt.Errorf("%w: %s is not compressed by %s", storage.ErrNotRegular, file, f.program)
	}
	return nil
}

// learn returns the measurement of a file in the state of token, of which size bytes were unpacked before err. It caches it
// unless the error may pass. A damaged file has one byte more than can be read, so that a reader gets the error.
func (s *Storage) learn(file string, token storage.Token, size int64, err error) measurement {
	m := measurement{token: token, size: size, exact: err == nil}
	_, isBroken := errors.AsType[*brokenError](err)
	if isBroken {
		m.size++
		m.err = err
	}
	if m.exact || isBroken {
		s.sizes.Add(file, m)
	}
	return m
}

// List implements storage.Files. It reads the directory twice, first for uncompressed sessions.
func (s *Storage) List(dir string, only []string, f func(storage.Item) bool) error {
	if only != nil {
		return storage.ListOnly(s, dir, only, f)
	}
	plain := map[string]bool{}
	err := s.files.List(dir, nil, func(item storage.Item) bool {
		if strings.HasSuffix(item.Name, sessionEnding) {
			plain[item.Name] = true
		}
		return true
	})
	if err != nil {
		return err
	}
	return s.files.List(dir, nil, func(item storage.Item) bool {
		name, isPacked := strings.CutSuffix(item.Name, s.format.ending)
		isSession := isPacked && strings.HasSuffix(name, sessionEnding)
		if !isSession || item.Kind != storage.KindFile {
			return f(item)
		}
		if plain[name] {
			return true // it is listed uncompressed
		}
		shown := storage.Item{Name: name, Kind: item.Kind}
		shown.State = func() (storage.Stat, error) {
			st, err := item.State()
			if err == nil {
				file := path.Join(dir, item.Name)
				st.Size = s.measure(file, st, nil).size
			}
			return st, err
		}
		return f(shown)
	})
}

// ReadAhead implements storage.Files: it does nothing.
func (s *Storage) ReadAhead([]string) {}

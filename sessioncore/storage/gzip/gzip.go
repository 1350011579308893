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
	"sessionfs/sessioncore/spill"
	"sessionfs/sessioncore/storage"
)

const (
	// Ending is what the name of a file has that gzip compressed, after that of the session file.
	Ending = ".gz"
	// ZstdEnding is what it has where zstd did.
	ZstdEnding = ".zst"
	// session ends the names of files that are looked for under their compressed name too.
	session = ".jsonl"
)

// Storage shows the files of another storage. A session file that is there only with the ending of its format after its name
// is shown unpacked. The compressed file itself is not shown.
type Storage struct {
	files   storage.Files
	format  *format
	limitOf func(int64) int64 // limitOf, but in tests
	turns   chan struct{}     // holds a value for each file that is being unpacked
	texts   spill.Room
	sizes   *lru.Cache[string, measured]

	mu       sync.Mutex // guards unpacked
	unpacked map[*object]struct{}
}

var _ storage.Files = (*Storage)(nil)

// measured is what is known of a compressed file in one state.
type measured struct {
	token storage.Token // of the compressed file
	size  int64         // unpacked
	exact bool          // it was unpacked; otherwise size is what the file says
	err   error         // why it cannot be unpacked to its end
}

const (
	// maxMeasured is the maximum number of files of which the size is kept. That of others is read again from the end of
	// each file.
	maxMeasured = 1 << 14
	// atOnce is how many files are unpacked at once: each may take maxInMemory.
	atOnce = 2
)

// New returns a Storage that shows files, some compressed by gzip. An open file is kept unpacked: in memory within limit, nil for one of its own, else
// in a file without a name in the directory temporary.
func New(files storage.Files, limit *budget.Budget, temporary string) *Storage {
	return newStorage(files, gzipped, limit, temporary)
}

// NewZstd is New for files that zstd compressed.
func NewZstd(files storage.Files, limit *budget.Budget, temporary string) *Storage {
	return newStorage(files, zstandard, limit, temporary)
}

func newStorage(files storage.Files, format *format, limit *budget.Budget, temporary string) *Storage {
	if limit == nil {
		limit = budget.New(budget.Default)
	}
	s := &Storage{
		files: files, format: format, limitOf: format.limitOf, turns: make(chan struct{}, atOnce),
		texts:    spill.Room{Limit: limit, Memory: limit.Kept(), Most: maxInMemory, Dir: temporary},
		unpacked: map[*object]struct{}{},
	}
	s.sizes, _ = lru.New[string, measured](maxMeasured)
	limit.OnFull(s.evict)
	return s
}

// find returns the state of what a name stands for, the name of the file behind it, and whether that is compressed.
func (s *Storage) find(name string) (st storage.Stat, file string, packed bool, err error) {
	st, err = s.files.Stat(name)
	if !storage.IsMissing(err) || !strings.HasSuffix(name, session) {
		return st, name, false, err
	}
	at, missing := s.files.Stat(name + s.format.ending)
	if missing != nil || at.Kind != storage.KindFile {
		return st, name, false, err
	}
	return at, name + s.format.ending, true, nil
}

// Stat implements storage.Files. A compressed file has the size that it says its content has, until that is known to be
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
	if known, ok := s.sizes.Get(file); ok && known.token == st.Token {
		return known
	}
	if obj == nil {
		var err error
		if obj, err = s.files.Open(file); err != nil {
			return measured{token: st.Token} // opening it will say why
		}
		defer obj.Close()
	}
	size, ok := s.format.sizeOf(obj, st.Size)
	if !ok {
		return s.count(file, st, obj)
	}
	m := measured{token: st.Token, size: size}
	s.sizes.Add(file, m)
	return m
}

// count unpacks a file that does not say how large it becomes.
func (s *Storage) count(file string, st storage.Stat, obj storage.Object) measured {
	s.turns <- struct{}{}
	defer func() { <-s.turns }()
	size, limit := int64(0), s.limitOf(st.Size)
	err := s.format.unpacking(obj, st.Token, func(in io.Reader) (err error) {
		size, err = io.Copy(io.Discard, io.LimitReader(in, limit+1))
		if err == nil && size > limit {
			err = tooLarge(st.Size, limit)
		}
		return err
	})
	return s.learn(file, st.Token, size, err)
}

// Open implements storage.Files. The file is not unpacked yet, unless what it says of its size cannot be.
func (s *Storage) Open(name string) (storage.Object, error) {
	obj, err := s.files.Open(name)
	if !storage.IsMissing(err) || !strings.HasSuffix(name, session) {
		return obj, err
	}
	packed, missing := s.files.Open(name + s.format.ending)
	if missing != nil {
		if storage.IsMissing(missing) {
			return nil, err
		}
		return nil, missing
	}
	return s.show(name+s.format.ending, packed)
}

// show returns the object that shows a compressed one, which it closes.
func (s *Storage) show(file string, obj storage.Object) (storage.Object, error) {
	st, err := obj.Stat()
	if err == nil {
		magic := make([]byte, len(s.format.magic))
		if n, _ := obj.ReadAt(magic, 0); n < len(magic) || string(magic) != s.format.magic {
			err = fmt.Errorf("%w: %s is not compressed by %s", storage.ErrNotRegular, file, s.format.program)
		}
	}
	if err != nil {
		_ = obj.Close()
		return nil, err
	}
	o := &object{storage: s, obj: obj, file: file, known: s.measure(file, st, obj)}
	// Text becomes smaller when it is compressed.
	if m := o.known; !m.exact && m.err == nil && (m.size < st.Size || m.size > s.limitOf(st.Size)) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.known, err = o.unpack(); err != nil && o.known.err == nil {
			_ = obj.Close()
			return nil, err
		}
	}
	return o, nil
}

// learn returns what is known of a file in a state since it was unpacked, and notes it unless that failed for a reason that
// can pass. What is damaged has a byte more than can be read, which is the error.
func (s *Storage) learn(file string, token storage.Token, size int64, err error) measured {
	m := measured{token: token, size: size, exact: err == nil}
	if _, ok := errors.AsType[*brokenError](err); ok {
		m.size, m.err = m.size+1, err
	}
	if m.exact || m.err != nil {
		s.sizes.Add(file, m)
	}
	return m
}

// List implements storage.Files. It reads the directory twice, first for the sessions that are not compressed.
func (s *Storage) List(dir string, only []string, f func(storage.Item) bool) error {
	if only != nil {
		return storage.ListOnly(s, dir, only, f)
	}
	plain := map[string]bool{}
	err := s.files.List(dir, nil, func(item storage.Item) bool {
		if strings.HasSuffix(item.Name, session) {
			plain[item.Name] = true
		}
		return true
	})
	if err != nil {
		return err
	}
	return s.files.List(dir, nil, func(item storage.Item) bool {
		name, packed := strings.CutSuffix(item.Name, s.format.ending)
		if !packed || item.Kind != storage.KindFile || !strings.HasSuffix(name, session) {
			return f(item)
		}
		shown := storage.Item{Name: name, Kind: item.Kind, State: func() (storage.Stat, error) {
			st, err := item.State()
			if err == nil {
				st.Size = s.measure(path.Join(dir, item.Name), st, nil).size
			}
			return st, err
		}}
		return plain[name] || f(shown)
	})
}

// ReadAhead implements storage.Files: it does nothing.
func (s *Storage) ReadAhead([]string) {}

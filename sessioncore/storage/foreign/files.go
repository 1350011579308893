package foreign

import (
	"context"
	"io/fs"
	"path"
	"sync"
	"sync/atomic"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/storage"
)

const (
	// maxKept is how many converted sessions are kept that nobody has open.
	maxKept = 32
	// beginning is how much of a session is made for who reads no further, from so much of its file.
	beginning, fromBeginning = 8 << 10, 256 << 10
	// maxReadings is how often a file is converted until its Converter has learned nothing more. What one learns can move
	// a record, and show that another one comes too late.
	maxReadings = 4
)

// Files shows the sessions of another agent as session files, which are made when they are read. All other files are what
// they are.
//
// A session has the size of the agent's file until it was converted: to look at all of them must not mean to read them.
type Files struct {
	storage.Files
	agent     Agent
	limit     *budget.Budget
	temporary string

	mu    sync.Mutex // guards what follows
	slots map[string]*slot
	given map[string]given
	clock int64
}

// given is what was told of a session whose conversion was given back: while its file is as it was, so is the session.
type given struct {
	about      About
	raw, shown storage.Token
	taken      uint64
}

// slot is a session that was converted.
type slot struct {
	before given      // what was told when it was there before
	mu     sync.Mutex // guards now, and is held while the file is converted
	now    *conversion
	open   atomic.Int32 // objects
	used   int64        // by the clock of Files, whose mutex guards it
}

// New returns the sessions of an agent among files. What is kept in memory is a part of limit, which may be nil; what is too
// large for that goes to files without a name in the directory temporary.
func New(files storage.Files, agent Agent, limit *budget.Budget, temporary string) *Files {
	return &Files{Files: files, agent: agent, limit: limit, temporary: temporary, slots: map[string]*slot{}, given: map[string]given{}}
}

// List implements storage.Files.
func (f *Files) List(dir string, only []string, call func(storage.Item) bool) error {
	return f.Files.List(dir, only, func(item storage.Item) bool {
		if name := path.Join(dir, item.Name); item.Kind == storage.KindFile && f.agent.IsSession(name) {
			state := item.State
			item.State = func() (storage.Stat, error) { return f.converted(name, state) }
		}
		return call(item)
	})
}

// Stat implements storage.Files.
func (f *Files) Stat(name string) (storage.Stat, error) {
	return f.converted(name, func() (storage.Stat, error) { return f.Files.Stat(name) })
}

// converted returns the state of a session as it is shown. If it was converted before, what is new in it is converted now.
func (f *Files) converted(name string, raw func() (storage.Stat, error)) (storage.Stat, error) {
	st, err := raw()
	if err != nil || st.Kind != storage.KindFile || !f.agent.IsSession(name) {
		return st, err
	}
	s, before := f.slot(name, false)
	if before.raw == st.Token {
		st.Token = before.shown
	}
	if s == nil {
		return st, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil {
		return st, nil
	}
	if s.now.raw != st.Token {
		obj, err := f.open(name)
		if err != nil {
			return st, err
		}
		defer obj.Close()
		if st, err = f.update(s, name, obj); err != nil {
			return st, err
		}
	}
	st.Token = s.now.token()
	return st, nil
}

// slot returns the slot of a session, and what was told of it before. It makes one if make is set.
func (f *Files) slot(name string, make bool) (*slot, given) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clock++
	s := f.slots[name]
	if s == nil && make {
		s = &slot{before: f.given[name], used: f.clock} // else it would be the first to be forgotten
		f.slots[name] = s
		f.forget()
	}
	if s != nil {
		s.used = f.clock
	}
	return s, f.given[name]
}

// forget gives back the sessions that were used least recently, if nobody has them open. Callers must hold f.mu.
func (f *Files) forget() {
	for len(f.slots) > maxKept {
		oldest, name := (*slot)(nil), ""
		for n, s := range f.slots {
			if s.open.Load() == 0 && (oldest == nil || s.used < oldest.used) {
				oldest, name = s, n
			}
		}
		if oldest == nil || !oldest.mu.TryLock() {
			return
		}
		delete(f.slots, name)
		if c := oldest.now; c != nil {
			f.given[name] = given{c.about, c.raw, c.token(), c.taken}
			oldest.drop()
		}
		oldest.mu.Unlock()
	}
}

// update converts the file as it is now. Callers must hold s.mu.
func (f *Files) update(s *slot, name string, obj storage.Object) (storage.Stat, error) {
	st, err := obj.Stat()
	if err != nil || s.now != nil && s.now.raw == st.Token {
		return st, err
	}
	ctx := context.Background()
	about, err := f.agent.About(name, obj, st.Size)
	if err != nil {
		return st, err
	}
	taken, converter := s.before.taken, f.agent.Converter(about, obj)
	if b := &s.before; b.raw != (storage.Token{}) && (b.about != about || b.raw != st.Token) {
		taken++
	}
	if c := s.now; c != nil {
		if c.about == about && c.raw.SameObject(st.Token) {
			ok, err := c.extend(ctx, obj, st.Token)
			if err != nil {
				s.drop()
				return st, err
			}
			if ok {
				again := c.again()
				if again == nil {
					return st, nil
				}
				converter = again
			}
		}
		taken = c.taken + 1
		s.drop()
	}
	for range maxReadings {
		c := &conversion{about: about, converter: converter, taken: taken}
		c.text.sink = &sink{temporary: f.temporary, hold: f.limit.Hold()}
		c.text.sink.use()
		if err := c.convert(ctx, obj, st.Token); err != nil {
			c.text.sink.leave()
			return st, err
		}
		if s.now != nil {
			s.drop()
		}
		s.now = c
		if converter = c.again(); converter == nil {
			break
		}
	}
	return st, nil
}

// drop gives back a conversion that is of no use any more. Callers must hold s.mu.
func (s *slot) drop() {
	s.now.text.sink.leave()
	s.now = nil
}

// converted reports whether the file was converted, as far as that can be told at once.
func (s *slot) converted() bool {
	if !s.mu.TryLock() {
		return false
	}
	defer s.mu.Unlock()
	return s.now != nil
}

// Open implements storage.Files.
func (f *Files) Open(name string) (storage.Object, error) {
	if !f.agent.IsSession(name) {
		return f.Files.Open(name)
	}
	raw, err := f.open(name)
	if err != nil {
		return nil, err
	}
	s, _ := f.slot(name, true)
	s.open.Add(1)
	return &object{files: f, name: name, raw: raw, slot: s}, nil
}

// open opens what a session is made of.
func (f *Files) open(name string) (storage.Object, error) {
	obj, err := f.Files.Open(name)
	if j, ok := f.agent.(Joiner); ok && err == nil {
		obj = j.Join(name, obj)
	}
	return obj, err
}

// object is an open session.
type object struct {
	files  *Files
	name   string
	raw    storage.Object
	slot   *slot
	closed atomic.Bool

	mu    sync.Mutex // guards what follows
	taken uint64
	text  text // the version that was seen last; without a sink if none was
	token storage.Token
}

// Raw returns the agent's file, and what the session says besides.
func (o *object) Raw() (file storage.Object, beside string) {
	if agent, ok := o.files.agent.(interface{ Beside(name string) string }); ok {
		beside = agent.Beside(o.name)
	}
	return o.raw, beside
}

// see returns the newest version that has all that was seen, and its token.
func (o *object) see() (text, storage.Token, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed.Load() {
		return text{}, storage.Token{}, fs.ErrClosed
	}
	o.slot.mu.Lock()
	defer o.slot.mu.Unlock()
	st, err := o.raw.Stat()
	c := o.slot.now
	if err == nil && c != nil && o.text.sink != nil && !c.raw.SameObject(st.Token) {
		return o.text, o.token, nil // the file was replaced
	}
	if err == nil && (c == nil || c.raw != st.Token) {
		_, err = o.files.update(o.slot, o.name, o.raw)
		c = o.slot.now
	}
	switch {
	case err != nil:
		return text{}, storage.Token{}, err
	case o.text.sink == nil:
		c.text.sink.use()
		o.taken, o.text, o.token = c.taken, c.text, c.token()
	case o.taken == c.taken && o.text.sink == c.text.sink:
		o.text, o.token = c.text, c.token()
	}
	return o.text, o.token, nil
}

// Stat implements storage.Object.
func (o *object) Stat() (storage.Stat, error) {
	st, err := o.raw.Stat()
	if err == nil {
		_, st.Token, err = o.see()
	}
	return st, err
}

// ReadAt implements storage.Object. Who reads the beginning alone has no more converted.
func (o *object) ReadAt(p []byte, off int64) (int, error) {
	o.mu.Lock()
	unseen := o.text.sink == nil
	o.mu.Unlock()
	if end := off + int64(len(p)); unseen && end <= beginning && !o.slot.converted() {
		if begun, err := o.begun(); err == nil && int64(len(begun)) >= end {
			return copy(p, begun[off:]), nil
		}
	}
	t, _, err := o.see()
	if err != nil {
		return 0, err
	}
	return t.ReadAt(p, off)
}

// begun converts the beginning of the file, as far as it does not change any more.
func (o *object) begun() ([]byte, error) {
	st, err := o.raw.Stat()
	if err != nil {
		return nil, err
	}
	about, err := o.files.agent.About(o.name, o.raw, st.Size)
	if err != nil {
		return nil, err
	}
	c, out := o.files.agent.Converter(about, o.raw), []byte(nil)
	err = jsonl.LoadFirst(context.Background(), o.raw, min(st.Size, fromBeginning), func(u *jsonl.Unit) error {
		if u.Kind == jsonl.ObjectUnit {
			out = c.Add(out, OneLine(u), u.Line)
		}
		if len(out) >= beginning || u.Kind != jsonl.ObjectUnit {
			return jsonl.ErrStop
		}
		return nil
	})
	return out, err
}

// Close implements storage.Object.
func (o *object) Close() error {
	if o.closed.Swap(true) {
		return fs.ErrClosed
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.text.sink != nil {
		o.text.sink.leave()
	}
	o.slot.open.Add(-1)
	return o.raw.Close()
}

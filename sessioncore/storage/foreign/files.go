package foreign

import (
	"context"
	"io/fs"
	"path"
	"sync"
	"sync/atomic"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/storage"
)

const (
	// maxKept is how many converted sessions are kept that nobody has open.
	maxKept = 32
	// enough is how much of a session is made for a list.
	enough = 8 << 10
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
	title      string // that the records were found to have
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
			f.given[name] = c.given()
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
	about, err := f.agent.About(name, obj, st.Size, false)
	if err != nil {
		return st, err
	}
	taken, converter := s.before.taken, Converter(nil)
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
	if converter == nil {
		likely := about
		if likely.Title == "" {
			listed, err := f.agent.About(name, obj, st.Size, true)
			if err != nil {
				return st, err
			}
			likely.Title = listed.Title
		}
		converter = f.agent.Converter(likely, obj)
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

// Open implements storage.Files.
func (f *Files) Open(name string) (storage.Object, error) {
	if !f.agent.IsSession(name) {
		return f.Files.Open(name)
	}
	raw, err := f.Files.Open(name)
	if err != nil {
		return nil, err
	}
	return &object{files: f, name: name, file: raw}, nil
}

// open opens what a session is made of.
func (f *Files) open(name string) (storage.Object, error) {
	obj, err := f.Files.Open(name)
	if err == nil {
		obj = f.join(name, obj)
	}
	return obj, err
}

// join returns what a session is made of, of which obj is its own file.
func (f *Files) join(name string, obj storage.Object) storage.Object {
	if j, ok := f.agent.(Joiner); ok {
		return j.Join(name, obj)
	}
	return obj
}

// known returns what was told of a session whose file is in the state raw. ok is false if it was not converted in that state.
func (f *Files) known(name string, raw storage.Token) (g given, ok bool) {
	s, g := f.slot(name, false)
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.now != nil {
			g = s.now.given()
		}
	}
	return g, g.raw == raw
}

// object is an open session. Until it is read, it has no slot, and its file is not joined with others: a list opens all.
type object struct {
	files  *Files
	name   string
	file   storage.Object
	closed atomic.Bool

	mu    sync.Mutex     // guards what follows
	raw   storage.Object // the file, joined with others
	slot  *slot
	taken uint64
	text  text // the version that was seen last; without a sink if none was
	token storage.Token
}

// Raw returns the agent's file, and what the session says besides.
func (o *object) Raw() (file storage.Object, beside string) {
	if agent, ok := o.files.agent.(interface{ Beside(name string) string }); ok {
		beside = agent.Beside(o.name)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.use(); o.raw == nil {
		return o.file, beside
	}
	return o.raw, beside
}

// use makes the object one of a session that is read. Callers must hold o.mu.
func (o *object) use() {
	if o.slot == nil && !o.closed.Load() {
		o.raw = o.files.join(o.name, o.file)
		o.slot, _ = o.files.slot(o.name, true)
		o.slot.open.Add(1)
	}
}

// see returns the newest version that has all that was seen, and its token.
func (o *object) see() (st storage.Stat, t text, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.use(); o.closed.Load() {
		return st, text{}, fs.ErrClosed
	}
	o.slot.mu.Lock()
	defer o.slot.mu.Unlock()
	st, err = o.raw.Stat()
	c := o.slot.now
	if err == nil && c != nil && o.text.sink != nil && !c.raw.SameObject(st.Token) {
		st.Token = o.token
		return st, o.text, nil // the file was replaced
	}
	if err == nil && (c == nil || c.raw != st.Token) {
		_, err = o.files.update(o.slot, o.name, o.raw)
		c = o.slot.now
	}
	switch {
	case err != nil:
		return st, text{}, err
	case o.text.sink == nil:
		c.text.sink.use()
		o.taken, o.text, o.token = c.taken, c.text, c.token()
	case o.taken == c.taken && o.text.sink == c.text.sink:
		o.text, o.token = c.text, c.token()
	}
	st.Token = o.token
	return st, o.text, nil
}

// Stat implements storage.Object.
func (o *object) Stat() (storage.Stat, error) {
	st, _, err := o.see()
	return st, err
}

// ReadAt implements storage.Object.
func (o *object) ReadAt(p []byte, off int64) (int, error) {
	_, t, err := o.see()
	if err != nil {
		return 0, err
	}
	return t.ReadAt(p, off)
}

// Beginning returns the beginning of a session as a list needs it, its state, and the size of the agent's file, which it
// does not convert. It tells also what was found when the file was converted, as long as that is as it was.
func (o *object) Beginning() (text []byte, st storage.Stat, size int64, err error) {
	raw, err := o.file.Stat()
	if err == nil {
		st, err = o.files.converted(o.name, func() (storage.Stat, error) { return raw, nil })
	}
	if err != nil {
		return nil, st, 0, err
	}
	h, err := newHead(o.file, raw.Size)
	if err != nil {
		return nil, st, 0, err
	}
	var about About
	if known, ok := o.files.known(o.name, raw.Token); ok {
		about, about.Title, about.Before = known.about, known.title, ""
	} else if about, err = o.files.agent.About(o.name, h, raw.Size, true); err != nil {
		return nil, st, 0, err
	}
	about.Listed = true
	text, err = h.convert(o.files.agent, about, raw.Size)
	return text, st, raw.Size, err
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
	if o.slot == nil {
		return o.file.Close()
	}
	o.slot.open.Add(-1)
	return o.raw.Close()
}

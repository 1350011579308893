package foreign

import (
	"context"
	"path"
	"sync"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/spill"
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
	// forLong is how much memory in all there is for each conversion at once that takes long: one
	// takes several times the longest answer, for a moment.
	forLong = 128 << 20
	// atOnce is from how many bytes on a conversion takes so long that a Stat does not wait for it.
	atOnce = 4 << 20
)

// Files shows the sessions of another agent as session files, which are made when they are read. All other files are what
// they are.
//
// A session has the size of the agent's file until it was converted: to look at all of them must not mean to read them.
type Files struct {
	storage.Files
	agent Agent
	texts spill.Room
	turns chan struct{} // holds a value for each conversion under way that takes long
	facts FactsAgent    // the agent, where sessions have facts alone; else nil

	mu      sync.Mutex // guards the fields below
	slots   map[string]*slot
	evicted map[string]reported
	clock   int64
	states  budget.Hold // converters
}

// reported is the state of a session that was reported for a state of its file, and the data needed
// to report it again.
type reported struct {
	about      About
	title      string        // that the records were found to have
	raw, shown storage.Token // of the session's own file, and of the session
	taken      uint64
}

// New returns the sessions of an agent among files. What is kept in memory is a part of limit, which may be nil; what is too
// large for that goes to files without a name in the directory temporary.
func New(files storage.Files, agent Agent, limit *budget.Budget, temporary string) *Files {
	f := &Files{
		Files: files, agent: agent, states: limit.Kept(),
		texts: spill.Room{Limit: limit, Memory: limit.Kept(), Most: inMemory, Free: small, Dir: temporary},
		turns: make(chan struct{}, max(1, limit.Size()/forLong)),
		slots: map[string]*slot{}, evicted: map[string]reported{},
	}
	limit.OnFull(f.evict)
	return f
}

// Facts returns the same sessions without their texts, for a bill. Where the agent has no such form, they are f itself.
func (f *Files) Facts() storage.Files {
	agent, ok := f.agent.(FactsAgent)
	if !ok {
		return f
	}
	facts := New(f.Files, agent, f.texts.Limit, f.texts.Dir)
	facts.facts = agent
	return facts
}

// about returns the facts about a session besides its records.
func (f *Files) about(name string, obj storage.Object, size int64) (about About, err error) {
	if f.facts == nil {
		return f.agent.About(name, obj, size, false)
	}
	about = f.facts.FactsAbout(name)
	about.Facts = true
	return about, nil
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

// converted returns the state of a session as it is shown. If it was converted before, its new
// records are converted now, unless that takes long: then the state is that of no object yet, so that
// the caller opens it and can give up.
func (f *Files) converted(name string, raw func() (storage.Stat, error)) (storage.Stat, error) {
	st, err := raw()
	if err != nil || st.Kind != storage.KindFile || !f.agent.IsSession(name) {
		return st, err
	}
	s, last := f.find(name)
	if last.raw == st.Token {
		st.Token = last.shown
		return st, nil
	}
	unknown := st
	unknown.Inode = ^unknown.Inode
	switch {
	case s == nil:
		return st, nil
	case s.busy.Load():
		return unknown, nil
	}
	obj, err := f.open(name)
	if err != nil {
		return st, err
	}
	defer obj.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil {
		return st, nil
	}
	if now, err := obj.Stat(); err != nil || s.now.toConvert(now) > atOnce {
		return unknown, err
	}
	if st, err = f.update(context.Background(), s, name, obj); err == nil {
		st.Token = s.now.token()
	}
	return st, err
}

// update converts the file as it is now. Callers must hold s.mu.
func (f *Files) update(ctx context.Context, s *slot, name string, obj storage.Object) (storage.Stat, error) {
	st, err := obj.Stat()
	if err != nil || s.now != nil && s.now.raw == st.Token {
		return st, err
	}
	if s.now.toConvert(st) > atOnce {
		s.busy.Store(true)
		defer s.busy.Store(false)
		select {
		case f.turns <- struct{}{}:
			defer func() { <-f.turns }()
		case <-ctx.Done():
			return st, ctx.Err()
		}
	}
	about, err := f.about(name, obj, st.Size)
	if err != nil {
		return st, err
	}
	converter := Converter(nil)
	if c := s.now; c != nil {
		if c.about == about && c.raw.SameObject(st.Token) {
			ok, err := c.extend(ctx, obj, st.Token)
			if err != nil {
				s.drop()
				return st, err
			}
			if ok {
				next := c.again()
				if next == nil {
					f.keep(s)
					return st, nil
				}
				converter = next
			}
		}
		s.drop()
	}
	if converter == nil {
		likely := about
		if likely.Title == "" && !about.Facts {
			listed, err := f.agent.About(name, obj, st.Size, true)
			if err != nil {
				return st, err
			}
			likely.Title = listed.Title
		}
		converter = f.agent.Converter(likely, obj)
	}
	return st, f.convert(ctx, s, about, converter, obj, st.Token)
}

// convert converts a file from its beginning. Callers must hold s.mu.
func (f *Files) convert(
	ctx context.Context, s *slot, about About, converter Converter, obj storage.Object, to storage.Token,
) error {
	taken := s.before.taken
	if b := &s.before; b.raw != (storage.Token{}) && (b.about != about || b.raw != ownState(obj, to)) {
		taken++
	}
	for range maxReadings {
		c := &conversion{about: about, converter: converter, taken: taken, texts: &f.texts, text: text{begin: f.texts.New()}}
		if err := c.convert(ctx, obj, to); err != nil {
			c.text.close()
			s.drop()
			return err
		}
		if s.now != nil {
			s.now.text.close()
		}
		s.now = c
		if converter = c.again(); converter == nil {
			break
		}
	}
	f.keep(s)
	return nil
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

// join returns the object with all of a session's records, of which obj is its own file.
func (f *Files) join(name string, obj storage.Object) storage.Object {
	if j, ok := f.agent.(Joiner); ok {
		return j.Join(name, obj)
	}
	return obj
}

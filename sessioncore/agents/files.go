package agents

import (
	"context"
	"path"
	"sync"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/storage"
)

const (
	// maxKept bounds the converted sessions that nobody has open.
	maxKept = 32
	// enough is the size of a session's beginning for a list, which the client reads of its own files
	// (docs/format.md, Listing and resuming). The last entry of it is whole.
	enough = 4 << 10
	// maxReadings bounds the conversions of a file by Converters that restart: a correction may
	// move a record, and so require the next one.
	maxReadings = 4
	// longMemory is the memory for each concurrent long conversion, which takes several times the
	// longest answer for a moment.
	longMemory = 128 << 20
	// longSize is the least size of a long conversion, so that a Stat does not wait for it.
	longSize = 4 << 20
)

// Files shows the sessions of another agent as session files, and all other files as they are.
//
// A session has the size of the agent's file until it is converted, as listings must not read it.
type Files struct {
	storage.Files
	format Format
	texts  budget.Room
	turns  chan struct{} // a value for each long conversion under way
	facts  FactsFormat   // the format, if sessions have only facts; else nil

	mu     sync.Mutex // guards the fields below
	slots  map[string]*slot
	last   map[string]reported // the last reports of sessions, also of evicted ones
	billed map[string]bool     // long sessions with charges that were read
	clock  int64
	states budget.Hold // of converters
}

// reported is the last reported state of a session, and the data to report it without a conversion.
type reported struct {
	about      About
	title      string        // found in the records
	raw, shown storage.Token // of the session's own file, and of the session
	rewrites   uint64
}

// NewFiles returns the sessions of an agent among files. Texts are kept in memory within limit,
// which may be nil, else in nameless files in the directory temporary.
func NewFiles(files storage.Files, format Format, limit *budget.Budget, temporary string) *Files {
	f := &Files{
		Files:  files,
		format: format,
		states: limit.Kept(),
		texts: budget.Room{
			Limit:  limit,
			Memory: limit.Kept(),
			Most:   inMemory,
			Free:   small,
			Dir:    temporary,
		},
		turns:  make(chan struct{}, max(1, limit.Size()/longMemory)),
		slots:  map[string]*slot{},
		last:   map[string]reported{},
		billed: map[string]bool{},
	}
	limit.OnFull(f.evict)
	return f
}

// Facts returns the same sessions without texts, for a bill, or f if the agent has no such form.
func (f *Files) Facts() storage.Files {
	format, ok := f.format.(FactsFormat)
	if !ok {
		return f
	}
	files := f.Files
	shown, isShown := files.(Shown)
	if isShown {
		files = shown.bill()
	}
	facts := NewFiles(files, format, f.texts.Limit, f.texts.Dir)
	facts.facts = format
	return facts
}

// about returns the facts about a session outside its records. obj has its size bytes.
func (f *Files) about(name string, obj storage.Object, size int64) (about About, err error) {
	if f.facts == nil {
		return f.format.About(name, obj, size, false)
	}
	about = f.facts.FactsAbout(name)
	about.Facts = true
	return about, nil
}

// List implements storage.Files.
func (f *Files) List(dir string, only []string, call func(storage.Item) bool) error {
	return f.Files.List(dir, only, func(item storage.Item) bool {
		name := path.Join(dir, item.Name)
		if item.Kind == storage.KindFile && f.format.IsSession(name) {
			state := item.State
			item.State = func() (storage.Stat, error) {
				return f.converted(name, state)
			}
		}
		return call(item)
	})
}

// Stat implements storage.Files.
func (f *Files) Stat(name string) (storage.Stat, error) {
	return f.converted(name, func() (storage.Stat, error) {
		return f.Files.Stat(name)
	})
}

// converted returns the state of a session; raw returns the state of its file. A session that is not converted has the
// state of its file. converted converts the growth of a converted session unless that is long: then the token is of no
// object, and the caller opens the session to be able to give up.
func (f *Files) converted(name string, raw func() (storage.Stat, error)) (storage.Stat, error) {
	st, err := raw()
	if err != nil || st.Kind != storage.KindFile || !f.format.IsSession(name) {
		return st, err
	}
	s, last := f.find(name)
	if last.raw == st.Token { // nothing changed since, also if the conversion was evicted
		st.Token = last.shown
		return st, nil
	}
	if s == nil {
		return st, nil
	}
	if s.busy.Load() {
		return ofNoObject(st), nil
	}
	obj, err := f.Files.Open(name)
	if err != nil {
		return st, err
	}
	obj = f.join(name, obj)
	defer obj.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil { // it was evicted meanwhile
		return st, nil
	}
	now, err := obj.Stat()
	if err != nil || s.now.toConvert(now) > longSize {
		return ofNoObject(st), err
	}
	st, err = f.update(context.Background(), s, obj)
	if err == nil {
		st.Token = s.now.token()
	}
	return st, err
}

// ofNoObject returns a state with the token of no object, which callers take for a change.
func ofNoObject(st storage.Stat) storage.Stat {
	st.Inode = ^st.Inode
	return st
}

// update converts the current state of a session's file, and returns that state. s.now is nil after an error of the
// conversion. Callers must hold s.mu.
func (f *Files) update(ctx context.Context, s *slot, obj storage.Object) (storage.Stat, error) {
	st, err := obj.Stat()
	if err != nil {
		return st, err
	}
	if s.now != nil && s.now.raw == st.Token {
		return st, nil
	}
	if s.now.toConvert(st) > longSize {
		s.busy.Store(true)
		defer s.busy.Store(false)
		done, err := f.awaitTurn(ctx)
		if err != nil {
			return st, err
		}
		defer done()
	}
	about, err := f.about(s.name, obj, st.Size)
	if err != nil {
		return st, err
	}
	isExtended, restarted, err := s.extend(ctx, about, obj, st.Token)
	if err != nil {
		s.drop()
		return st, err
	}
	if isExtended {
		f.keep(s)
		return st, nil
	}
	s.drop()
	converter := restarted
	if converter == nil {
		likely, err := f.likely(s.name, about, obj, st.Size)
		if err != nil {
			return st, err
		}
		converter = f.format.Converter(likely, obj)
	}
	return st, f.convert(ctx, s, about, converter, obj, st.Token)
}

// extend extends the conversion by the growth of its file. isExtended is false if the file must be converted from its
// start: by restarted, if the growth told that earlier lines are wrong, else by a new converter. Callers must hold s.mu.
func (s *slot) extend(
	ctx context.Context, about About, obj storage.Object, to storage.Token,
) (isExtended bool, restarted *Builder, err error) {
	c := s.now
	if c == nil || c.about != about || !c.raw.SameObject(to) {
		return false, nil, nil
	}
	ok, err := c.extend(ctx, obj, to)
	if err != nil || !ok {
		return false, nil, err
	}
	restarted = c.converter.Restart()
	return restarted == nil, restarted, nil
}

// start returns the facts about a session outside its records, and a converter for its file of size bytes. words
// becomes About.Words.
func (f *Files) start(name string, obj storage.Object, size int64, words bool) (about About, first *Builder, err error) {
	ofEnds := obj
	if f.facts == nil {
		memory := ends.Get().(*[ShortSize]byte)
		defer ends.Put(memory)
		ofEnds, err = newHeadIn(obj, size, memory) // it is read for the facts, and again for the title
		if err != nil {
			return about, nil, err
		}
	}
	about, err = f.about(name, ofEnds, size)
	if err != nil {
		return about, nil, err
	}
	about.Words = words
	likely, err := f.likely(name, about, ofEnds, size)
	if err != nil {
		return about, nil, err
	}
	return about, f.format.Converter(likely, obj), nil
}

// likely returns the facts about a session, with the title that a list finds if they have none. Mostly that is the title
// that all records give, and the converter need not restart for it.
func (f *Files) likely(name string, about About, obj storage.Object, size int64) (About, error) {
	if about.Title != "" || about.Facts {
		return about, nil
	}
	listed, err := f.format.About(name, obj, size, true)
	about.Title = listed.Title
	return about, err
}

// convert converts a file from its start to the state to, and makes that the session's conversion. converter is for the
// first reading; there are more if it restarts. Callers must hold s.mu.
func (f *Files) convert(
	ctx context.Context, s *slot, about About, converter *Builder, obj storage.Object, to storage.Token,
) error {
	_, last := f.find(s.name)
	rewrites := last.rewrites
	wasReported := last.raw != (storage.Token{})
	isOther := last.about != about || last.raw != ownState(obj, to)
	if wasReported && isOther { // readers must not take the text for a continuation
		rewrites++
	}
	for range maxReadings {
		c := &conversion{
			about:     about,
			converter: converter,
			rewrites:  rewrites,
			texts:     &f.texts,
		}
		c.text.begin = f.texts.New()
		err := c.convert(ctx, obj, to)
		if err != nil {
			c.text.close()
			s.drop()
			return err
		}
		if s.now != nil {
			s.now.text.close()
		}
		s.now = c
		converter = c.converter.Restart()
		if converter == nil {
			break
		}
	}
	f.keep(s)
	return nil
}

// Open implements storage.Files.
func (f *Files) Open(name string) (storage.Object, error) {
	if !f.format.IsSession(name) {
		return f.Files.Open(name)
	}
	raw, err := f.Files.Open(name)
	if err != nil {
		return nil, err
	}
	return &object{files: f, name: name, file: raw}, nil
}

// part returns the object with the records of a session alone; obj is the file that has them.
func (f *Files) part(name string, obj storage.Object) storage.Object {
	if s, ok := f.format.(Sharer); ok {
		return s.Part(name, obj)
	}
	return obj
}

// join returns the object with all records of a session; obj is its own file. Closing it closes obj.
func (f *Files) join(name string, obj storage.Object) storage.Object {
	obj = f.part(name, obj)
	if j, ok := f.format.(Joiner); ok {
		return j.Join(name, obj)
	}
	return obj
}

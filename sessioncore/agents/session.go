package agents

import (
	"bytes"
	"context"
	"io/fs"
	"sync"
	"sync/atomic"

	"sessionfs/sessioncore/storage"
)

// object is an open session. Until it is read it has no slot, and its file is not joined with
// others, as a list opens all sessions.
type object struct {
	files  *Files
	name   string
	file   storage.Object
	closed atomic.Bool

	mu       sync.Mutex     // guards the fields below
	raw      storage.Object // the file, joined with others
	slot     *slot
	rewrites uint64
	text     text          // the version read last; may be empty
	token    storage.Token // of text
	source   storage.Token // the state of the agent's file of text
}

// Beside returns the title and the working directory that the session has elsewhere than in its
// records, else "".
func (o *object) Beside() (title, cwd string) {
	titles, hasTitles := o.files.format.(titleKeeper)
	if hasTitles {
		title = titles.Beside(o.name)
	}
	cwds, hasCwds := o.files.format.(cwdKeeper)
	if hasCwds {
		cwd = cwds.CwdBeside(o.name)
	}
	return title, cwd
}

// Raw returns the agent's file, joined with others, or the file alone once the object is closed. It acquires no slot, as a
// search reads all files and converts few.
func (o *object) Raw() storage.Object {
	_, isJoined := o.files.format.(Joiner)
	_, isShared := o.files.format.(Sharer)
	if !isJoined && !isShared {
		return o.file
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.join()
	if o.raw == nil {
		return o.file
	}
	return o.raw
}

// join joins the file with others, unless the object is closed. Callers must hold o.mu.
func (o *object) join() {
	if o.raw == nil && !o.closed.Load() {
		o.raw = o.files.join(o.name, o.file)
	}
}

// InCaller returns those ids that are records of the session that called this one, nil if the agent has no such records.
func (o *object) InCaller(ctx context.Context, ids map[string]bool) (found map[string]bool, err error) {
	format, ok := o.files.format.(CalledFormat)
	if !ok {
		return nil, nil
	}
	return format.InCaller(ctx, o.name, ids)
}

// prepare joins the file and acquires the slot, unless the object is closed: then each may be nil.
func (o *object) prepare() (storage.Object, *slot) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.join()
	if o.slot == nil && !o.closed.Load() {
		o.slot = o.files.acquire(o.name)
	}
	return o.raw, o.slot
}

// refresh advances the object to the newest version that continues its own, and returns the state of its version. It
// converts the growth of the file. It ends early with ctx's error; then the conversion continues only for other callers.
func (o *object) refresh(ctx context.Context) (storage.Stat, error) {
	raw, s := o.prepare()
	if o.closed.Load() {
		return storage.Stat{}, fs.ErrClosed
	}
	st, err := raw.Stat()
	if err != nil || o.isCurrent(&st) {
		return st, err
	}
	leave := s.waiters.Join(ctx)
	defer leave()
	err = storage.LockUntil(ctx, &s.mu)
	if err != nil {
		return st, err
	}
	defer s.mu.Unlock()
	o.mu.Lock()
	token := o.token
	wasRead := o.text.begin != nil
	isReplaced := wasRead && s.now != nil && !s.now.raw.SameObject(st.Token)
	o.mu.Unlock()
	if isReplaced { // the object shows its version to the end, as an open file does
		st.Token = token
		return st, nil
	}
	work, done := s.waiters.Work()
	defer done()
	st, err = o.files.update(work, s, raw)
	if err != nil {
		return st, err
	}
	st.Token, err = o.advance(s.now)
	return st, err
}

// ConvertOnce implements sessioncore.Passing. It returns nil for a session that is converted, and for a long one: these
// are read as others. With words an answer ends where it does without: a short file has no more behind one than
// maxWaiting.
func (o *object) ConvertOnce(ctx context.Context, dst []byte, words bool) ([]byte, storage.Stat, error) {
	raw := o.Raw()
	st, err := raw.Stat()
	if err != nil {
		return nil, st, err
	}
	_, last := o.files.find(o.name)
	isConverted := last.raw != (storage.Token{})
	if isConverted || st.Size > longSize {
		return nil, st, nil
	}
	about, converter, err := o.files.start(o.name, raw, st.Size, words)
	if err != nil {
		return nil, st, err
	}
	for range maxReadings {
		c := &conversion{about: about, converter: converter}
		dst, err = c.convertOnce(ctx, raw, st.Size, dst)
		if err != nil {
			return nil, st, err
		}
		converter = c.converter.Restart()
		if converter == nil {
			break
		}
	}
	st.Size = int64(len(dst))
	return dst, st, nil
}

// isCurrent reports whether the object's version is of the file's state, and sets its token.
func (o *object) isCurrent(st *storage.Stat) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.text.begin == nil || o.source != st.Token {
		return false
	}
	st.Token = o.token
	return true
}

// advance makes the object show a conversion, if that continues its version, and returns its token. It keeps the texts of
// the version open until the next one or Close. Callers must hold the mutex of the slot.
func (o *object) advance(c *conversion) (storage.Token, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.closed.Load():
		return storage.Token{}, fs.ErrClosed
	case o.text.begin == nil:
		c.text.retain()
		o.rewrites = c.rewrites
		o.text = c.text
	case o.rewrites == c.rewrites && o.text.begin == c.text.begin:
		c.text.tail.Retain()
		o.text.tail.Close()
		o.text = c.text
	default:
		return o.token, nil
	}
	o.token = c.token()
	o.source = c.raw
	return o.token, nil
}

// Stat implements storage.Object.
func (o *object) Stat() (storage.Stat, error) { return o.refresh(context.Background()) }

// StatUntil implements storage.StatUntil.
func (o *object) StatUntil(ctx context.Context) (storage.Stat, error) { return o.refresh(ctx) }

// ReadAt implements storage.Object. It looks for growth only for bytes behind the version that it has.
func (o *object) ReadAt(p []byte, off int64) (int, error) {
	t := o.version()
	if t.begin == nil || off+int64(len(p)) > t.size() {
		t.tail.Close()
		_, err := o.refresh(context.Background())
		if err != nil {
			return 0, err
		}
		t = o.version()
	}
	defer t.tail.Close()
	return t.ReadAt(p, off)
}

// version returns the version read last. The caller must close its tail, which another reader may
// replace.
func (o *object) version() text {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.tail.Retain()
	return o.text
}

// Beginning returns the beginning of a session for a list, its state, and the size of the agent's
// file, without a conversion. It has the facts that an earlier conversion of this state found.
func (o *object) Beginning() (text []byte, st storage.Stat, size int64, err error) {
	raw, err := o.file.Stat()
	if err != nil {
		return nil, st, 0, err
	}
	st, err = o.files.converted(o.name, func() (storage.Stat, error) {
		return raw, nil
	})
	if err != nil {
		return nil, st, 0, err
	}
	file := o.files.part(o.name, o.file)
	own, err := file.Stat()
	if err != nil {
		return nil, st, 0, err
	}
	memory := ends.Get().(*[ShortSize]byte)
	defer ends.Put(memory)
	h, err := newHeadIn(file, own.Size, memory)
	if err != nil {
		return nil, st, 0, err
	}
	var about About
	_, last := o.files.find(o.name)
	if last.raw == raw.Token {
		about = last.about
		about.Title = last.title
		about.Before = "" // no file is joined for a list
	} else {
		about, err = o.files.format.About(o.name, h, own.Size, true)
	}
	if err != nil {
		return nil, st, 0, err
	}
	about.Listed = true
	text, err = h.convert(o.files.format, about, own.Size, isListed)
	return text, st, raw.Size, err
}

// ends recycles buffers for both ends of files: a list opens thousands.
var ends = sync.Pool{New: func() any { return new([ShortSize]byte) }}

// Start implements sessioncore.Started. It returns nil where only Beginning tells the header.
func (o *object) Start(named bool) ([]byte, error) {
	brief, isBrief := o.file.(Brief)
	if isBrief {
		return o.startOf(brief, named)
	}
	format, ok := o.files.format.(Starter)
	if !ok {
		return nil, storage.ErrUnsupported
	}
	_, last := o.files.find(o.name)
	if last.raw != (storage.Token{}) {
		return nil, nil // an earlier conversion knows more
	}
	file := o.files.part(o.name, o.file)
	st, err := file.Stat()
	if err != nil {
		return nil, err
	}
	memory := ends.Get().(*[ShortSize]byte)
	defer ends.Put(memory)
	h, err := newHeadIn(file, st.Size, memory)
	if err != nil || h.packed || isDocument(h.text) {
		return nil, err
	}
	if named {
		return o.namedStart(format, h, st.Size)
	}
	tail, err := h.tail(st.Size)
	if err != nil || format.MayMove(h.text, tail) {
		return nil, err
	}
	about := format.FactsAbout(o.name)
	about.Listed = true
	about.Facts = true // the header alone matters
	return h.convert(format, about, st.Size, hasHeader)
}

// hasHeader reports whether the beginning of a session has its header.
func hasHeader(out []byte) bool { return len(out) > 0 }

// hasName reports whether the beginning of a session without a title has the words that name it.
func hasName(out []byte) bool {
	return isListed(out) || bytes.Contains(out, []byte(`"role":"user"`))
}

// isListed reports whether the beginning of a session is long enough for a list.
func isListed(out []byte) bool { return len(out) >= enough }

// namedStart is Start for the name of the session.
func (o *object) namedStart(format Starter, h *head, size int64) ([]byte, error) {
	about, err := format.Named(o.name, h, size)
	if err != nil {
		return nil, err
	}
	about.Listed = true
	isEnough := hasName
	if about.Title != "" {
		isEnough = hasHeader
		about.Facts = true // the header alone matters
	}
	return h.convert(format, about, size, isEnough)
}

// Header implements sessioncore.Headed. It returns nil where the records are needed for the header.
func (o *object) Header() (text []byte, st storage.Stat, err error) {
	brief, ok := o.file.(Brief)
	if !ok {
		return nil, st, nil
	}
	about := brief.About()
	if about.Title == "" { // the records tell the title
		return nil, st, nil
	}
	st, err = o.files.converted(o.name, func() (storage.Stat, error) {
		return brief.State(), nil
	})
	return o.headerOf(about, brief), st, err
}

// startOf is Start for a session with a known first record. It returns nil for an agent without FactsAbout.
func (o *object) startOf(brief Brief, named bool) ([]byte, error) {
	if named {
		text, _, err := o.Header()
		return text, err
	}
	format, ok := o.files.format.(FactsFormat)
	if !ok {
		return nil, nil
	}
	return o.headerOf(format.FactsAbout(o.name), brief), nil
}

// headerOf returns the header that the first record of a session gives.
func (o *object) headerOf(about About, brief Brief) []byte {
	about.Listed = true
	converter := o.files.format.Converter(about, brief)
	return converter.Add(nil, brief.FirstRecord(), 1)
}

// Close implements storage.Object.
func (o *object) Close() error {
	if o.closed.Swap(true) {
		return fs.ErrClosed
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.text.begin != nil {
		o.text.close()
	}
	if o.slot != nil {
		o.files.release(o.slot)
	}
	if o.raw != nil {
		return o.raw.Close()
	}
	return o.file.Close()
}

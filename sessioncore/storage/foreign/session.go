package foreign

import (
	"context"
	"io/fs"
	"sync"
	"sync/atomic"

	"sessionfs/sessioncore/storage"
)

// object is an open session. Until it is read, it has no slot, and its file is not joined with
// others: a list opens all.
type object struct {
	files  *Files
	name   string
	file   storage.Object
	closed atomic.Bool

	mu    sync.Mutex     // guards the fields below
	raw   storage.Object // the file, joined with others
	slot  *slot
	taken uint64
	text  text          // the version that was seen last; empty if none was
	token storage.Token // of it
	of    storage.Token // the state of the agent's file that it was made of
}

// Raw returns the agent's file, and the title that the session has from elsewhere.
func (o *object) Raw() (file storage.Object, beside string) {
	if agent, ok := o.files.agent.(interface{ Beside(name string) string }); ok {
		beside = agent.Beside(o.name)
	}
	if _, isJoined := o.files.agent.(Joiner); !isJoined {
		return o.file, beside
	}
	if raw, _ := o.use(); raw != nil {
		return raw, beside
	}
	return o.file, beside
}

// use makes the object one of a session that is read. It returns nothing once the object is closed.
func (o *object) use() (storage.Object, *slot) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.slot == nil && !o.closed.Load() {
		o.raw = o.files.join(o.name, o.file)
		o.slot = o.files.acquire(o.name)
	}
	return o.raw, o.slot
}

// see makes the newest version that has all that was seen the object's. When ctx is done, the error
// is that of ctx, and the file is converted only if other callers wait for that.
func (o *object) see(ctx context.Context) (storage.Stat, error) {
	raw, s := o.use()
	if o.closed.Load() {
		return storage.Stat{}, fs.ErrClosed
	}
	st, err := raw.Stat()
	if err != nil || o.hasSeen(&st) {
		return st, err
	}
	leave := s.waiters.Join(ctx)
	defer leave()
	if err := storage.LockUntil(ctx, &s.mu); err != nil {
		return st, err
	}
	defer s.mu.Unlock()
	if o.isReplaced(s.now, st.Token) {
		o.mu.Lock()
		defer o.mu.Unlock()
		st.Token = o.token
		return st, nil
	}
	work, done := s.waiters.Work()
	defer done()
	if st, err = o.files.update(work, s, o.name, raw); err != nil {
		return st, err
	}
	st.Token, err = o.goOn(s.now)
	return st, err
}

// isReplaced reports whether a file in that state is none that a conversion is of.
func (o *object) isReplaced(now *conversion, file storage.Token) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.begin != nil && now != nil && !now.raw.SameObject(file)
}

// hasSeen reports whether the object has a version of the agent's file in a state, and sets its
// token.
func (o *object) hasSeen(st *storage.Stat) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.text.begin == nil || o.of != st.Token {
		return false
	}
	st.Token = o.token
	return true
}

// goOn makes the object show a conversion, if that has all that was seen, and returns its token.
func (o *object) goOn(c *conversion) (storage.Token, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.closed.Load():
		return storage.Token{}, fs.ErrClosed
	case o.text.begin == nil:
		c.text.retain()
		o.taken, o.text = c.taken, c.text
	case o.taken == c.taken && o.text.begin == c.text.begin:
		c.text.tail.Retain()
		o.text.tail.Close()
		o.text = c.text
	default:
		return o.token, nil
	}
	o.token, o.of = c.token(), c.raw
	return o.token, nil
}

// Stat implements storage.Object.
func (o *object) Stat() (storage.Stat, error) { return o.see(context.Background()) }

// StatUntil is Stat for a caller that can give up; see storage.StatUntil.
func (o *object) StatUntil(ctx context.Context) (storage.Stat, error) { return o.see(ctx) }

// ReadAt implements storage.Object.
func (o *object) ReadAt(p []byte, off int64) (int, error) {
	t := o.seen()
	if t.begin == nil || off+int64(len(p)) > t.size() {
		t.tail.Close()
		if _, err := o.see(context.Background()); err != nil {
			return 0, err
		}
		t = o.seen()
	}
	defer t.tail.Close()
	return t.ReadAt(p, off)
}

// seen returns the version that was seen last. Its caller must close the tail, which another reader
// may replace.
func (o *object) seen() text {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.tail.Retain()
	return o.text
}

// Beginning returns the beginning of a session as a list needs it, its state, and the size of the
// agent's file, which it does not convert. It tells also the facts found when the file was converted,
// as long as that is as it was.
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
	if _, last := o.files.find(o.name); last.raw == raw.Token {
		about, about.Title, about.Before = last.about, last.title, ""
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
	if o.text.begin != nil {
		o.text.close()
	}
	if o.slot == nil {
		return o.file.Close()
	}
	o.files.release(o.slot)
	return o.raw.Close()
}

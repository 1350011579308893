package storage

import (
	"sync"
	"time"
)

// lookAgain is how often Later looks for its other Files until they are there.
const lookAgain = 5 * time.Second

// later is Files over which others are laid as soon as they are there.
type later struct {
	front Files
	find  func() (Files, bool)
	now   func() time.Time

	mu    sync.Mutex // guards the fields below
	next  time.Time  // of the next look
	found Files      // both, nil as long as the others are not there
	since time.Time  // when they were found; zero if they were there at the first look
}

var _ Files = (*later)(nil)

// OverLater returns the Files of front with those that find returns behind them, as Over does, as soon as
// it returns some.
func OverLater(front Files, find func() (Files, bool)) Files {
	return &later{front: front, find: find, now: time.Now}
}

// files returns the present Files: front alone until find returns the others, which it is asked for every lookAgain.
func (l *later) files() Files {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.found != nil {
		return l.found
	}
	now := l.now()
	if now.Before(l.next) {
		return l.front
	}
	isFirst := l.next.IsZero()
	l.next = now.Add(lookAgain)
	back, isThere := l.find()
	if !isThere {
		return l.front
	}
	l.found = Over(l.front, back)
	if !isFirst { // else nobody has seen the directories without them
		l.since = now
	}
	return l.found
}

// changed returns the state of a directory as changed when the other files were found, since it may show
// them from then on.
func (l *later) changed(st Stat) Stat {
	l.mu.Lock()
	defer l.mu.Unlock()
	if st.Kind == KindDir && !l.since.IsZero() {
		st.Changed = max(st.Changed, l.since.UnixNano())
	}
	return st
}

// List implements Files.
func (l *later) List(dir string, only []string, f func(Item) bool) error {
	return l.files().List(dir, only, func(item Item) bool {
		if item.Kind == KindDir && item.State != nil {
			state := item.State
			item.State = func() (Stat, error) {
				st, err := state()
				return l.changed(st), err
			}
		}
		return f(item)
	})
}

// Stat implements Files.
func (l *later) Stat(name string) (Stat, error) {
	st, err := l.files().Stat(name)
	return l.changed(st), err
}

// Open implements Files.
func (l *later) Open(name string) (Object, error) { return l.files().Open(name) }

// ReadAhead implements Files.
func (l *later) ReadAhead(names []string) { l.files().ReadAhead(names) }

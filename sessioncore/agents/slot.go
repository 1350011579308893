package agents

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/storage"
)

// slot is a session that was opened, with its conversion once it is read.
type slot struct {
	name string

	waiters storage.Waiters // for the conversion
	mu      sync.Mutex      // guards now; held while the file is converted
	now     *conversion

	isConverted atomic.Bool  // now is not nil
	busy        atomic.Bool  // a long conversion is under way
	open        atomic.Int32 // number of objects

	used  int64 // time of Files.clock; Files.mu guards this and state
	state int64 // bytes of the converter
}

// find returns the slot of a session, nil if it is not converted, and its last report, zero if there is none.
func (f *Files) find(name string) (*slot, reported) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.slots[name]
	if s != nil && !s.isConverted.Load() {
		s = nil
	}
	return s, f.last[name]
}

// acquire returns the slot of a session for an object, which must call release.
func (f *Files) acquire(name string) *slot {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.slots[name]
	if s == nil {
		s = &slot{name: name}
		f.slots[name] = s
	}
	f.clock++
	s.used = f.clock
	s.open.Add(1)
	return s
}

// release ends a use of a slot. Slots without a use may be evicted.
func (f *Files) release(s *slot) {
	if s.open.Add(-1) == 0 {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.trim(nil)
	}
}

// keep notes the report of a session's conversion, counts its memory, and evicts others beyond the limits. Callers must
// hold s.mu.
func (f *Files) keep(s *slot) {
	f.mu.Lock()
	now := s.now
	f.last[s.name] = reported{
		about:    now.about,
		title:    now.converter.Title(),
		raw:      now.own,
		shown:    now.token(),
		rewrites: now.rewrites,
	}
	s.isConverted.Store(true)
	s.state = now.state()
	f.trim(s)
	f.mu.Unlock()
	if budget.FilesFull() { // texts of all agents count
		f.texts.Limit.Evict() // it locks f.mu
	}
}

// trim evicts slots beyond the limits: closed sessions, the one used least recently first, then the
// converters of others. It does not evict the slot kept, which may be nil, so that a growing session does not restart
// each time. Callers must hold f.mu.
func (f *Files) trim(kept *slot) {
	if f.fits() {
		return
	}
	slots := slices.SortedFunc(maps.Values(f.slots), beforeInEviction)
	for _, s := range slots {
		if s != kept {
			f.evictSlot(s)
		}
		if f.fits() {
			return
		}
	}
	f.states.Set(f.stateSize()) // it is beyond the limit
}

// beforeInEviction orders slots: closed sessions come first, then those used least recently.
func beforeInEviction(s, t *slot) int {
	isOpen := min(s.open.Load(), 1)
	isOtherOpen := min(t.open.Load(), 1)
	closedFirst := cmp.Compare(isOpen, isOtherOpen)
	if closedFirst != 0 {
		return closedFirst
	}
	return cmp.Compare(s.used, t.used)
}

// fits reports whether the kept conversions are within the limits. If they are, it sets the memory of converters that the
// budget counts. Callers must hold f.mu.
func (f *Files) fits() bool {
	idle := 0
	for _, s := range f.slots {
		if s.open.Load() == 0 {
			idle++
		}
	}
	mustMakeRoom := idle > 0 && !f.hasRoom() // another conversion is cheaper than files
	if mustMakeRoom || idle > maxKept {
		return false
	}
	err := f.states.Resize(f.stateSize())
	return err == nil
}

// hasRoom reports whether one more text of the largest size fits into memory, and files for longer ones can be made.
func (f *Files) hasRoom() bool {
	if budget.FilesFull() {
		return false
	}
	err := f.texts.Memory.Add(inMemory)
	if err != nil {
		return false
	}
	_ = f.texts.Memory.Add(-inMemory) // it was only tried; less memory is no error
	return true
}

// stateSize returns the memory of the converters of all slots.
func (f *Files) stateSize() (n int64) {
	for _, s := range f.slots {
		n += s.state
	}
	return n
}

// evictSlot evicts a session that nobody has open, or the converter of another one, unless it is in
// use. Callers must hold f.mu.
func (f *Files) evictSlot(s *slot) {
	if !s.mu.TryLock() {
		return
	}
	defer s.mu.Unlock()
	s.state = 0
	switch {
	case s.open.Load() == 0:
		delete(f.slots, s.name)
		s.drop()
	case s.now != nil:
		s.now.converter = nil
	}
}

// evict evicts as much as it can. Texts in use move from memory to files.
func (f *Files) evict() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.slots {
		f.evictSlot(s)
		s.spill()
	}
	f.states.Set(f.stateSize())
}

// spill moves the text of a conversion from memory to files, unless it is in use. Callers must not wait for s.mu, as
// they hold Files.mu.
func (s *slot) spill() {
	if !s.mu.TryLock() {
		return
	}
	defer s.mu.Unlock()
	if s.now != nil {
		s.now.text.begin.Spill()
		s.now.text.tail.Spill()
	}
}

// drop drops the conversion, if there is one. Callers must hold s.mu.
func (s *slot) drop() {
	if s.now != nil {
		s.isConverted.Store(false)
		s.now.text.close()
		s.now = nil
	}
}

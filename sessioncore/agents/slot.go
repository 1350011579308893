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

// find returns the slot of a converted session or nil, and its last report.
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

// keep counts a conversion's memory, and evicts others beyond the limits. Callers must hold s.mu.
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
	s.state = s.now.state()
	f.trim(s)
	f.mu.Unlock()
	if budget.FilesFull() {
		f.texts.Limit.Evict()
	}
}

// trim evicts slots beyond the limits: closed sessions, the one used least recently first, then the
// converters of others. It does not evict the slot kept, so that a growing session does not restart
// each time. Callers must hold f.mu.
func (f *Files) trim(kept *slot) {
	if f.fits() {
		return
	}
	names := slices.SortedFunc(maps.Keys(f.slots), func(a, b string) int {
		s := f.slots[a]
		t := f.slots[b]
		idleFirst := cmp.Compare(min(s.open.Load(), 1), min(t.open.Load(), 1))
		if idleFirst != 0 {
			return idleFirst
		}
		return cmp.Compare(s.used, t.used)
	})
	for _, name := range names {
		s := f.slots[name]
		if s != kept {
			f.evictSlot(s)
		}
		if f.fits() {
			return
		}
	}
	f.states.Set(f.stateSize())
}

// fits reports whether the kept conversions are within the limits.
func (f *Files) fits() bool {
	idle := 0
	for _, s := range f.slots {
		if s.open.Load() == 0 {
			idle++
		}
	}
	hasRoom := idle == 0 // another conversion is cheaper than files
	if !hasRoom && !budget.FilesFull() && f.texts.Memory.Add(inMemory) == nil {
		_ = f.texts.Memory.Add(-inMemory)
		hasRoom = true
	}
	if !hasRoom || idle > maxKept {
		return false
	}
	err := f.states.Resize(f.stateSize())
	return err == nil
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
		if s.mu.TryLock() {
			if s.now != nil {
				s.now.text.begin.Spill()
				s.now.text.tail.Spill()
			}
			s.mu.Unlock()
		}
	}
	f.states.Set(f.stateSize())
}

// drop drops the conversion. Callers must hold s.mu.
func (s *slot) drop() {
	if s.now != nil {
		s.isConverted.Store(false)
		s.now.text.close()
		s.now = nil
	}
}

package nodes

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

const (
	// maxCopies is how many files may be on their way into the mount at a time: each holds a descriptor and a temporary
	// file. Programs copy one after the other. No user but the owner may have more than half of them.
	maxCopies = 64
	// maxCopyWait is how long a copy that nobody has open waits to be renamed. Programs do that at once.
	maxCopyWait = 10 * time.Minute
)

// copies are the files that are being copied in, and what was.
type copies struct {
	mu      sync.Mutex                // guards what follows
	all     map[unfinishedCopy]uint32 // whose they are
	waiting map[string]unfinishedCopy // those with a temporary name, by path
	copiedIn
}

// unfinishedCopy is a copying.
type unfinishedCopy interface {
	// idleSince returns since when nobody has it open, in nanoseconds since the epoch, 0 if somebody has.
	idleSince() int64
	discard()
}

// errManyCopies means that too many files are being copied in.
var errManyCopies = fmt.Errorf("too many files are being copied in, and not closed or renamed: %d", maxCopies)

// add adds a copy of a user. dropped is one that is to be given up for it, or nil.
func (s *copies) add(c unfinishedCopy, user uint32, limited bool) (dropped unfinishedCopy, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all, s.waiting = map[unfinishedCopy]uint32{}, map[string]unfinishedCopy{}
	}
	his := 0
	for _, other := range s.all {
		if other == user {
			his++
		}
	}
	if limited && his >= maxCopies/2 {
		return nil, errManyCopies
	}
	if len(s.all) >= maxCopies {
		if dropped = s.oldestIdle(); dropped == nil {
			return nil, errManyCopies
		}
		s.removeLocked(dropped)
	}
	s.all[c] = user
	return dropped, nil
}

// oldestIdle returns the copy that nobody has open and that waits longest to be renamed, nil if there is none. Callers
// must hold s.mu.
func (s *copies) oldestIdle() (oldest unfinishedCopy) {
	for _, c := range s.waiting {
		if since := c.idleSince(); since != 0 && (oldest == nil || since < oldest.idleSince()) {
			oldest = c
		}
	}
	return oldest
}

// wait makes a copy known under a temporary name, in place of one that has it, which is returned.
func (s *copies) wait(path string, c unfinishedCopy) (before unfinishedCopy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetNameLocked(c)
	before = s.waiting[path]
	s.waiting[path] = c
	return before
}

// find returns the copy that has a temporary name, or nil.
func (s *copies) find(path string) unfinishedCopy {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting[path]
}

// remove forgets a copy.
func (s *copies) remove(c unfinishedCopy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeLocked(c)
}

func (s *copies) removeLocked(c unfinishedCopy) {
	delete(s.all, c)
	s.forgetNameLocked(c)
}

func (s *copies) forgetNameLocked(c unfinishedCopy) {
	for at, other := range s.waiting {
		if other == c {
			delete(s.waiting, at)
		}
	}
}

// forgetName forgets the temporary name of a copy.
func (s *copies) forgetName(c unfinishedCopy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetNameLocked(c)
}

// takeAll forgets all copies and returns them.
func (s *copies) takeAll() (all []unfinishedCopy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.all {
		all = append(all, c)
	}
	s.all, s.waiting = nil, nil
	return all
}

// threadOf returns the thread that makes a request, 0 if that is not known.
func threadOf(ctx context.Context) uint32 {
	if caller, ok := fuse.FromContext(ctx); ok {
		return caller.Pid
	}
	return 0
}

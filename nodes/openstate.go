package nodes

import (
	"io"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// forReading are the flags of every handle that only reads: closing it has nothing to tell us, which saves
// a round trip for each open.
const forReading = fuse.FOPEN_NOFLUSH

// openState decides what the kernel may do with the pages of a file whose content can change between
// two opens. All handles of an inode share one page cache. So it is kept only if nothing changed since
// the last open, and a handle on another version than those that are open goes around it: each handle
// shows one version (design.md section 6).
type openState[V comparable] struct {
	mu      sync.Mutex // guards what follows
	count   int        // handles that use the cache
	version V          // of what they show, or showed last
	known   bool
}

// open returns the flags for a new handle on a version. same tells whether two versions can share the
// cache while both are open: a file that only grew. counted is to be given to close.
func (s *openState[V]) open(version V, same func(a, b V) bool) (flags uint32, counted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count > 0 && !same(s.version, version) {
		return forReading | fuse.FOPEN_DIRECT_IO, false
	}
	flags = forReading
	if s.known && s.version == version {
		flags |= fuse.FOPEN_KEEP_CACHE
	}
	s.count++
	s.version, s.known = version, true
	return flags, true
}

func (s *openState[V]) close(counted bool) {
	if !counted {
		return
	}
	s.mu.Lock()
	s.count--
	s.mu.Unlock()
}

// readAt reads from r; what lies behind its end is not there.
func readAt(r io.ReaderAt, dest []byte, off int64, n *node) (fuse.ReadResult, syscall.Errno) {
	got, err := r.ReadAt(dest, off)
	if err != nil && err != io.EOF {
		return nil, n.view.fail("read", n.path(), err)
	}
	return fuse.ReadResultData(dest[:got]), 0
}

// sortItems brings a listing into the order of names.
func sortItems(items []item) {
	slices.SortFunc(items, func(a, b item) int { return strings.Compare(a.name, b.name) })
}

package nodes

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
)

// version is one version of a file that is made from a session. It holds a snapshot until Close.
type version[V any] interface {
	io.ReaderAt
	Size() int64
	Close()
	// Continues reports whether it begins with all of an older version.
	Continues(old V) bool
}

// line is what the open handles of a file show: one version, and where a reader comes to its end, the
// newest one, if that continues it (docs/design.md section 6). Where the session takes another turn, the
// handles stay with what they have, and the name stands for another node: so the size that a handle's fstat
// tells never shrinks, and no reader takes the file for truncated.
type line[V version[V]] struct {
	mu      sync.RWMutex // guards what follows; held for reading while version is read
	handles int
	version V
	attr    fuse.Attr // of version
	// goesOn: readers go on at the end; else version is all there will ever be.
	goesOn bool
	serial int64 // of the snapshot that version was compared with last
	// current: in that snapshot the file's name shows version, no more and no less.
	current bool
}

// shown is what a file shows in a snapshot.
type shown[V any] struct {
	version V
	attr    fuse.Attr
	// beyond: it goes on behind the end of what the file's name shows.
	beyond bool
}

// open adds a handle, the first one with what first makes. It returns false where the handles that there are
// show something else than the name does now; the caller called update with the same snapshot.
func (l *line[V]) open(snap *sessioncore.Snapshot, goesOn bool, first func() (shown[V], error)) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.handles > 0 {
		if !l.current || l.serial != snap.Serial() || l.goesOn != goesOn {
			return false, nil
		}
		l.handles++
		return true, nil
	}
	s, err := first()
	if err != nil {
		return false, err
	}
	l.handles, l.version, l.attr = 1, s.version, s.attr
	l.goesOn, l.serial, l.current = goesOn, snap.Serial(), true
	return true, nil
}

// update goes on to what next makes of a newer snapshot, where that continues what is shown.
func (l *line[V]) update(snap *sessioncore.Snapshot, next func(goesOn bool) (shown[V], error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.handles == 0 || l.serial == snap.Serial() {
		return
	}
	l.serial, l.current = snap.Serial(), false
	s, err := next(l.goesOn)
	if err != nil {
		return // the handles show what they have
	}
	if !s.version.Continues(l.version) {
		s.version.Close()
		return
	}
	l.version.Close()
	l.version, l.attr, l.current = s.version, s.attr, !s.beyond
}

// isCurrent reports whether new handles may join those that there are: they show what the name does. The
// caller called update with the same snapshot.
func (l *line[V]) isCurrent(snap *sessioncore.Snapshot, goesOn func() bool) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.handles == 0 || l.current && l.serial == snap.Serial() && l.goesOn == goesOn()
}

// openAttr fills in the attributes of what handles show; false where there is none.
func (l *line[V]) openAttr(out *fuse.Attr) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.handles > 0 {
		*out = l.attr
	}
	return l.handles > 0
}

// read reads a part of what is shown; atEnd is called where it would come to the end, and may update.
func (l *line[V]) read(dest []byte, off int64, n *node, atEnd func()) (fuse.ReadResult, syscall.Errno) {
	l.mu.RLock()
	end := off+int64(len(dest)) > l.version.Size()
	l.mu.RUnlock()
	if end {
		atEnd()
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	return readAt(l.version, dest, off, n)
}

// release takes a handle away; the last one lets the version go.
func (l *line[V]) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.handles--; l.handles == 0 {
		var none V
		l.version.Close()
		l.version = none
	}
}

// follower is a node whose open handles may share a line.
type follower interface {
	// follows reports whether they do.
	follows() bool
	// standsFor reports whether the node shows what its name does now; content as for makeBranchFile.
	standsFor(content uint64) bool
}

// successors counts the nodes that took over a name from another one.
var successors atomic.Uint64

// named is child for nodes some of which are followers. Where those who have a follower open see something else than
// the name shows now, the name stands for another node: another file to the kernel. They may have the only
// reference to the old one, so a new node never has the identity of an earlier one.
func (n *node) named(ctx context.Context, id fusefs.StableAttr, name string, content uint64, make func() fusefs.InodeEmbedder) *fusefs.Inode {
	id.Gen ^= content
	if c := n.GetChild(name); c != nil {
		f, ok := c.Operations().(follower)
		if !ok || !f.follows() {
			return n.child(ctx, id, name, make)
		}
		if f.standsFor(content) {
			return c
		}
	}
	made := make()
	if f, ok := made.(follower); ok && f.follows() {
		id.Gen ^= successors.Add(1) << 20
	}
	return n.NewInode(ctx, made, id)
}

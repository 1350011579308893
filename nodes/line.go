package nodes

import (
	"context"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/storage"
)

// line is what the open handles of a file show: one version, and when a reader comes to its end, the
// newest one, if that continues it (docs/design.md section 6). If the newest version does not continue it, the
// handles keep their version, and the name is given to another node: so the size that a handle's fstat
// returns never shrinks, and no reader takes the file for truncated.
type line struct {
	making sync.Mutex // held while a version is made; taken before mu

	mu      sync.RWMutex // guards what follows; held for reading while version is read
	handles int
	version *document.Document // nil if there are no handles
	attr    fuse.Attr          // of version
	// goesOn says that handles continue with newer versions; else version does not change.
	goesOn bool
	serial int64 // of the snapshot that version was compared with last
	// current says that in that snapshot the file's name shows exactly version.
	current bool
}

// shown is what a file shows in a snapshot.
type shown struct {
	version *document.Document
	attr    fuse.Attr
	// beyond says that it is longer than what the file's name shows.
	beyond bool
}

// open adds a handle; the first one gets the version that first returns. It returns false if the existing handles
// show something else than the name does now. Callers must have called update with the same snapshot.
func (l *line) open(ctx context.Context, snap *sessioncore.Snapshot, goesOn bool, first func() (shown, error)) (bool, error) {
	if err := storage.LockUntil(ctx, &l.making); err != nil {
		return false, err
	}
	defer l.making.Unlock()
	if joined, handles := l.join(snap, goesOn); handles {
		return joined, nil
	}
	s, err := first()
	if err != nil {
		return false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.handles, l.version, l.attr = 1, s.version, s.attr
	l.goesOn, l.serial, l.current = goesOn, snap.Serial(), true
	return true, nil
}

// join adds a handle to those that there are, if they show what the name does.
func (l *line) join(snap *sessioncore.Snapshot, goesOn bool) (joined, handles bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.handles == 0 {
		return false, false
	}
	if !l.current || l.serial != snap.Serial() || l.goesOn != goesOn {
		return false, true
	}
	l.handles++
	return true, true
}

// update replaces the version by the one that next returns for a newer snapshot, if that continues it.
func (l *line) update(ctx context.Context, snap *sessioncore.Snapshot, next func(goesOn bool) (shown, error)) {
	if old, _ := l.isOld(snap); !old || storage.LockUntil(ctx, &l.making) != nil {
		return
	}
	defer l.making.Unlock()
	old, goesOn := l.isOld(snap)
	if !old {
		return
	}
	s, err := next(goesOn)
	if err != nil && ctx.Err() != nil {
		return // the next caller tries again
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.serial, l.current = snap.Serial(), false
	if err != nil {
		return // the handles keep their version
	}
	if l.handles == 0 || !s.version.Continues(l.version) {
		s.version.Close()
		return
	}
	l.version.Close()
	l.version, l.attr, l.current = s.version, s.attr, !s.beyond
}

// isOld reports whether the handles have not been compared with a snapshot.
func (l *line) isOld(snap *sessioncore.Snapshot) (old, goesOn bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.handles > 0 && l.serial != snap.Serial(), l.goesOn
}

// isCurrent reports whether new handles may share the version of the existing ones, as these show what the name does.
// Callers must have called update with the same snapshot.
func (l *line) isCurrent(snap *sessioncore.Snapshot, goesOn func() bool) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.handles == 0 || l.current && l.serial == snap.Serial() && l.goesOn == goesOn()
}

// context returns the context of a stat. While there are handles, no signal ends it: the answer would be an old size, which
// a reader at the end takes for the end of what there is.
func (l *line) context(ctx context.Context) context.Context {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.handles > 0 {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// openAttr sets the attributes of what the handles show. It returns false if there are no handles.
func (l *line) openAttr(out *fuse.Attr) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.handles > 0 {
		*out = l.attr
	}
	return l.handles > 0
}

// endsBefore reports whether the version ends before an offset.
func (l *line) endsBefore(off int64) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return off > l.version.Size()
}

// read reads a part of the version.
func (l *line) read(dest []byte, off int64, n *node) (fuse.ReadResult, syscall.Errno) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return readAt(l.version, dest, off, n)
}

// release removes a handle; the last one closes the version.
func (l *line) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.handles--; l.handles == 0 {
		l.version.Close()
		l.version = nil
	}
}

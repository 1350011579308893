package nodes

import (
	"context"
	"sync"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/storage"
)

// line is the version that the open handles of a file share. When a reader comes to its end, it
// becomes the newest version, if that continues it (docs/design.md section 6). Otherwise the
// handles keep their version, and the name is given to another node: so the size in a handle's
// fstat never shrinks, and no reader takes the file for truncated.
type line struct {
	session *sessioncore.Session
	// show makes the version of a snapshot that the file's name shows, or extended the one with
	// which its readers continue.
	show func(ctx context.Context, snap *sessioncore.Snapshot, extended bool) (rendering, error)
	// grows reports whether handles opened in a snapshot follow newer versions; nil if none do.
	grows func(*sessioncore.Snapshot) bool
	// content is the Content of the Child whose node has the line.
	content uint64

	making sync.Mutex // held while a version is made; taken before mu

	mu      sync.RWMutex // guards the fields below; held for reading while version is read
	handles int
	version *document.Document // nil if there are no handles
	attr    Attr               // of version
	follows bool               // handles continue with newer versions; otherwise version does not change
	serial  int64              // of the snapshot with which version was compared last
	current bool               // in that snapshot the file's name shows exactly version
}

// rendering is the version of a file in a snapshot.
type rendering struct {
	version  *document.Document
	attr     Attr
	isLonger bool // than the version that the file's name shows
}

// Follows reports whether the handles of the file share a version.
func (l *line) Follows() bool { return l.grows != nil }

// StandsFor reports whether new handles may share the version of the existing ones, as the name
// shows the same; content is that of the name's Child.
func (l *line) StandsFor(ctx context.Context, content uint64) bool {
	if l.content != content {
		return false
	}
	snap, err := l.session.Acquire(ctx)
	if err != nil {
		return true // the next operation returns the error
	}
	defer snap.Release()
	l.update(ctx, snap)
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.handles == 0 || l.current && l.serial == snap.Serial() && l.follows == l.grows(snap)
}

// open adds a handle. It returns false if the existing handles show another version than the name.
func (l *line) open(ctx context.Context) (bool, error) {
	snap, err := l.session.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer snap.Release()
	l.update(ctx, snap)
	if err := storage.LockUntil(ctx, &l.making); err != nil {
		return false, err
	}
	defer l.making.Unlock()
	follows := l.Follows() && l.grows(snap)
	if joined, handles := l.join(snap, follows); handles {
		return joined, nil
	}
	s, err := l.show(ctx, snap, false)
	if err != nil {
		return false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.handles, l.version, l.attr = 1, s.version, s.attr
	l.follows, l.serial, l.current = follows, snap.Serial(), true
	return true, nil
}

// join adds a handle to the existing ones, if they show the name's version.
func (l *line) join(snap *sessioncore.Snapshot, follows bool) (joined, handles bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.handles == 0 {
		return false, false
	}
	if !l.current || l.serial != snap.Serial() || l.follows != follows {
		return false, true
	}
	l.handles++
	return true, true
}

// update makes the handles continue with the version of a newer snapshot, if that continues theirs.
func (l *line) update(ctx context.Context, snap *sessioncore.Snapshot) {
	if old, _ := l.isOld(snap); !old || storage.LockUntil(ctx, &l.making) != nil {
		return
	}
	defer l.making.Unlock()
	old, follows := l.isOld(snap)
	if !old {
		return
	}
	s, err := l.show(ctx, snap, follows)
	if err != nil && ctx.Err() != nil {
		return // the next caller retries
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
	l.version, l.attr, l.current = s.version, s.attr, !s.isLonger
}

// isOld reports whether the handles have not been compared with a snapshot.
func (l *line) isOld(snap *sessioncore.Snapshot) (old, follows bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.handles > 0 && l.serial != snap.Serial(), l.follows
}

// stat returns the attributes of the handles' version, or without handles those of measure. With
// handles no signal ends it: readers at the end would take an old size for the end of the file.
func (l *line) stat(
	ctx context.Context, measure func(context.Context, *sessioncore.Snapshot) (Attr, error),
) (Attr, error) {
	if _, open := l.openAttr(); open {
		ctx = context.WithoutCancel(ctx)
	}
	snap, err := l.session.Acquire(ctx)
	if err == nil {
		defer snap.Release()
		l.update(ctx, snap)
	}
	if a, open := l.openAttr(); open {
		return a, nil
	}
	if err != nil {
		return Attr{}, err
	}
	return measure(ctx, snap)
}

// openAttr returns the attributes of the handles' version. open is false without handles.
func (l *line) openAttr() (a Attr, open bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.attr, l.handles > 0
}

// advance updates to the newest version if a read up to an offset would come to the end.
func (l *line) advance(ctx context.Context, off int64) {
	l.mu.RLock()
	atEnd := off > l.version.Size()
	l.mu.RUnlock()
	if !atEnd {
		return
	}
	if snap, err := l.session.Acquire(ctx); err == nil {
		l.update(ctx, snap)
		snap.Release()
	}
}

// readAt reads a part of the version.
func (l *line) readAt(p []byte, off int64) (int, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.version.ReadAt(p, off)
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

package nodes

import (
	"context"
	"sync"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/storage"
)

// line is what the open handles of a file show: one version, and when a reader comes to its end, the
// newest one, if that continues it (docs/design.md section 6). If the newest version does not continue it, the
// handles keep their version, and the name is given to another node: so the size that a handle's fstat
// returns never shrinks, and no reader takes the file for truncated.
type line struct {
	session *sessioncore.Session
	// show makes the version that the file's name shows in a snapshot; further, the one that its readers continue with.
	show func(ctx context.Context, snap *sessioncore.Snapshot, further bool) (shown, error)
	// grows reports whether handles that are opened in a snapshot continue with newer versions; nil if handles never do.
	grows func(*sessioncore.Snapshot) bool
	// content is that of the child whose node has the line.
	content uint64

	making sync.Mutex // held while a version is made; taken before mu

	mu      sync.RWMutex // guards what follows; held for reading while version is read
	handles int
	version *document.Document // nil if there are no handles
	attr    Attr               // of version
	// goesOn says that handles continue with newer versions; else version does not change.
	goesOn bool
	serial int64 // of the snapshot that version was compared with last
	// current says that in that snapshot the file's name shows exactly version.
	current bool
}

// shown is what a file shows in a snapshot.
type shown struct {
	version *document.Document
	attr    Attr
	// beyond says that it is longer than what the file's name shows.
	beyond bool
}

// Follows reports whether the handles of the file share a version.
func (l *line) Follows() bool { return l.grows != nil }

// StandsFor reports whether new handles may share the version of the existing ones, as these show what the name does;
// content is that of the child that the name stands for.
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
	return l.handles == 0 || l.current && l.serial == snap.Serial() && l.goesOn == l.grows(snap)
}

// open adds a handle. It returns false if the existing handles show something else than the name does now.
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
	goesOn := l.Follows() && l.grows(snap)
	if joined, handles := l.join(snap, goesOn); handles {
		return joined, nil
	}
	s, err := l.show(ctx, snap, false)
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

// update makes the handles continue with the version of a newer snapshot, if that continues theirs.
func (l *line) update(ctx context.Context, snap *sessioncore.Snapshot) {
	if old, _ := l.isOld(snap); !old || storage.LockUntil(ctx, &l.making) != nil {
		return
	}
	defer l.making.Unlock()
	old, goesOn := l.isOld(snap)
	if !old {
		return
	}
	s, err := l.show(ctx, snap, goesOn)
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

// stat returns the attributes of the version that the handles show; if there are none, those of measure. While there are
// handles, no signal ends it: the answer would be an old size, which a reader at the end takes for the end of the file.
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

// openAttr returns the attributes of what the handles show. open is false if there are no handles.
func (l *line) openAttr() (a Attr, open bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.attr, l.handles > 0
}

// goOn is update to the newest version, if a read up to an offset would come to the end.
func (l *line) goOn(ctx context.Context, off int64) {
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

package nodes

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/storage"
)

// render renders a generated file from a snapshot.
type render func(context.Context, *sessioncore.Snapshot) (*document.Document, error)

// renderAt renders a generated file at an entry: the leaf, or the end of a branch.
type renderAt func(context.Context, *sessioncore.Snapshot, sessioncore.Entry) (*document.Document, error)

// atLeaf returns a render at the leaf of the snapshot.
func atLeaf(r renderAt) render {
	return func(ctx context.Context, snap *sessioncore.Snapshot) (*document.Document, error) {
		leaf, err := snap.Leaf()
		if err != nil {
			return nil, err
		}
		return r(ctx, snap, leaf)
	}
}

// atOnce makes a render of a quick function.
func atOnce(r func(*sessioncore.Snapshot) (*document.Document, error)) render {
	return func(_ context.Context, snap *sessioncore.Snapshot) (*document.Document, error) {
		return r(snap)
	}
}

// GeneratedFile is a file of a session's directory that is rendered from the session: header.json,
// context.json, problems.jsonl, secrets.jsonl, transcript.md, usage.json, and the content of title
// and labels. All reads of a handle see one version, so a door keeps no content.
type GeneratedFile struct {
	node
	sharedVersion
	// render renders the file as its name shows it, or extended as its readers continue; nil for a
	// control file without content.
	render func(ctx context.Context, snap *sessioncore.Snapshot, extended bool) (rendering, error)
	// otherState returns the state of another file that the content depends on, zero if there is none.
	otherState func(context.Context) (storage.Token, error)
	writable   bool // it is a control file too
	// size caches the size for a snapshot, so that a stat does not render the file once more.
	size atomic.Pointer[renderedSize]
}

// renderedSize is the size of the file in one snapshot, with the states that it depends on.
type renderedSize struct {
	serial int64          // of the snapshot
	bytes  int64          // the size
	blobs  *storage.Token // the state of the blobs; nil if it depends on none
	other  storage.Token  // the result of otherState
}

// init sets the directory of the file, its session, and the functions that make its versions. r is nil for a
// control file without content, and for a caller that sets f.render itself.
func (f *GeneratedFile) init(in *Directory, r render) {
	f.in = in
	f.session = in.session
	f.show = f.version
	f.otherState = func(context.Context) (storage.Token, error) {
		return storage.Token{}, nil
	}
	if r == nil {
		return
	}
	f.render = func(ctx context.Context, snap *sessioncore.Snapshot, _ bool) (rendering, error) {
		version, err := r(ctx, snap)
		return rendering{version: version}, err
	}
}

// generated returns a generated file. Its open handles keep their version.
func (d *SessionDir) generated(r render) *GeneratedFile {
	f := &GeneratedFile{}
	f.init(&d.Directory, r)
	return f
}

// growing makes the open handles continue with newer versions, for tail -f.
func (f *GeneratedFile) growing() *GeneratedFile {
	f.grows = func(*sessioncore.Snapshot) bool { return true }
	return f
}

// Stat returns the attributes of the open handles' version, or renders the file for its size.
func (f *GeneratedFile) Stat(ctx context.Context) (Attr, error) {
	return f.stat(ctx, func(ctx context.Context, snap *sessioncore.Snapshot) (Attr, error) {
		size := f.size.Load()
		if !f.isExact(ctx, size, snap) {
			s, measured, err := f.renderMeasured(ctx, snap)
			if err != nil {
				return Attr{}, err
			}
			s.version.Close() // only its size was wanted
			size = measured
		}
		return f.attr(snap, size.bytes), nil
	})
}

// attr returns the attributes of the file with this size, in bytes, in a snapshot.
func (f *GeneratedFile) attr(snap *sessioncore.Snapshot, size int64) Attr {
	if f.writable {
		return f.view().writableAttr(snap.Stat(), size)
	}
	return fileAttr(snap.Stat(), size)
}

// renderMeasured renders the file as its name shows it. It caches the size in f.size, unless the blobs
// or the other file may still change without another token. The caller must close the version.
func (f *GeneratedFile) renderMeasured(
	ctx context.Context, snap *sessioncore.Snapshot,
) (s rendering, size *renderedSize, err error) {
	// The states are read before the file is rendered: after a change meanwhile the size counts as old.
	blobs := f.view().blobsState()
	now := time.Now().UnixNano()
	other, err := f.otherState(ctx)
	if err != nil {
		return s, nil, err
	}
	s, err = f.render(ctx, snap, false)
	if err != nil {
		return s, nil, err
	}
	size = &renderedSize{
		serial: snap.Serial(),
		bytes:  s.version.Size(),
		other:  other,
	}
	isSettled := other == storage.Token{} || !other.Racy(now)
	if s.version.HasBlobs() {
		size.blobs = blobs
		if blobs == nil || blobs.Racy(now) {
			isSettled = false
		}
	}
	if isSettled {
		f.size.Store(size)
	}
	return s, size, nil
}

// isExact reports whether a size, nil for none, is the file's in a snapshot. Blobs and another session can come
// and go without a change of the session.
func (f *GeneratedFile) isExact(ctx context.Context, size *renderedSize, snap *sessioncore.Snapshot) bool {
	if size == nil || size.serial != snap.Serial() {
		return false
	}
	other, err := f.otherState(ctx)
	if err != nil || other != size.other {
		return false
	}
	if size.blobs == nil {
		return true
	}
	blobs := f.view().blobsState()
	return blobs != nil && *blobs == *size.blobs
}

// version makes the version of the file in a snapshot, with its attributes, and accounts for its memory until
// it is closed. The error is ErrNoMemory if there is no room for it.
func (f *GeneratedFile) version(
	ctx context.Context, snap *sessioncore.Snapshot, extended bool,
) (s rendering, err error) {
	if extended {
		s, err = f.render(ctx, snap, true)
	} else {
		s, _, err = f.renderMeasured(ctx, snap)
	}
	if err != nil {
		return s, err
	}
	s.attr = f.attr(snap, s.version.Size())
	hold := f.view().Memory.Hold()
	s.version.OnClose(hold.Close)
	err = hold.ResizeShown(s.version.Memory())
	if err != nil {
		s.version.Close()
	}
	return s, err
}

// Open renders the file from the current snapshot. A file that follows shares the version of the other open
// handles, if that is the one of its name; otherwise the handle has a version of its own, which does not grow.
func (f *GeneratedFile) Open(ctx context.Context, _ int) (Handle, error) {
	if f.Follows() {
		joined, err := f.open(ctx)
		if err != nil {
			return nil, err
		}
		if joined {
			return &documentHandle{shared: &f.sharedVersion, advances: true}, nil
		}
	}
	// If it follows, it has changed in another way since its name was looked up.
	own := &sharedVersion{session: f.session, show: f.show}
	_, err := own.open(ctx)
	if err != nil {
		return nil, err
	}
	return &documentHandle{shared: own}, nil
}

// documentHandle is an open file that is rendered from a session.
type documentHandle struct {
	shared *sharedVersion // the version of the file, or one of its own
	// advances reports that a reader at the end advances the version. A door that reads whole pages
	// and knows the size reads beyond the end only after a stat has returned a larger one.
	advances bool
}

// ReadAt implements Handle.
func (h *documentHandle) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if h.advances {
		h.shared.advance(ctx, off+int64(len(p)))
	}
	h.shared.mu.RLock()
	defer h.shared.mu.RUnlock()
	return h.shared.version.ReadAt(p, off)
}

// Stat returns the attributes of the version.
func (h *documentHandle) Stat(ctx context.Context) (Attr, error) {
	if h.shared.Follows() {
		return h.shared.stat(ctx, nil) // the version has this handle
	}
	a, _ := h.shared.openAttr()
	return a, nil
}

func (h *documentHandle) Close() { h.shared.release() }

// sharedVersion is the version that the open handles of a file share. When a reader comes to its end, it
// becomes the newest version, if that continues it (docs/design.md section 6). Otherwise the handles keep
// their version, and the name is given to another node: so the size in a handle's fstat never shrinks, and
// no reader takes the file for truncated.
//
//	from       by                                                     to
//	closed     open                                                   current
//	current    update; the newest version continues the handles'      current, with that version
//	current    update; it does not, or readers go beyond the name     left
//	left       update; the newest version continues the handles'      current, with that version
//	any        release of the last handle                             closed
//
// A state holds for one snapshot, the one of serial. For another snapshot update compares first.
type sharedVersion struct {
	session *sessioncore.Session
	// show makes the version of a snapshot that the file's name shows, or extended the one with
	// which its readers continue.
	show func(ctx context.Context, snap *sessioncore.Snapshot, extended bool) (rendering, error)
	// grows reports whether handles opened in a snapshot follow newer versions; nil if none do.
	grows func(*sessioncore.Snapshot) bool
	// content is the Content of the Child that the version belongs to.
	content uint64

	making sync.Mutex // held while a version is made; taken before mu

	mu      sync.RWMutex // guards the fields below; held for reading while version is read
	state   versionState
	handles int                // 0 if closed
	version *document.Document // nil if closed
	attr    Attr               // the attributes of version
	follows bool               // handles continue with newer versions; otherwise version does not change
	serial  int64              // the snapshot that version was compared with last
}

// versionState is the state of a sharedVersion.
type versionState uint8

const (
	// versionClosed has no handles.
	versionClosed versionState = iota
	// versionCurrent is exactly the version that the file's name shows; new handles share it.
	versionCurrent
	// versionLeft is another version than the name shows; new handles get a node of their own.
	versionLeft
)

// rendering is the version of a file in a snapshot.
type rendering struct {
	version  *document.Document
	attr     Attr
	isLonger bool // than the version that the file's name shows
}

// Follows reports whether the handles of the file share a version.
func (v *sharedVersion) Follows() bool { return v.grows != nil }

// StandsFor reports whether new handles may share the version of the existing ones, as the name
// shows the same; content is the Content of the name's Child.
func (v *sharedVersion) StandsFor(ctx context.Context, content uint64) bool {
	if v.content != content {
		return false
	}
	snap, err := v.session.Acquire(ctx)
	if err != nil {
		return true // the next operation returns the error
	}
	defer snap.Release()
	v.update(ctx, snap)
	follows := v.grows(snap)
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.stateFor(snap, follows) != versionLeft
}

// stateFor returns the state for a handle that is opened in a snapshot; follows reports whether it is to follow
// newer versions. A version that was not compared with the snapshot, or does not follow alike, counts as left.
// Callers must hold v.mu.
func (v *sharedVersion) stateFor(snap *sessioncore.Snapshot, follows bool) versionState {
	isCompared := v.serial == snap.Serial()
	followsAlike := v.follows == follows
	if v.state == versionCurrent && isCompared && followsAlike {
		return versionCurrent
	}
	if v.state == versionClosed {
		return versionClosed
	}
	return versionLeft
}

// open adds a handle. It returns false, and adds none, if the existing handles show another version than the
// name.
func (v *sharedVersion) open(ctx context.Context) (bool, error) {
	snap, err := v.session.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer snap.Release()
	v.update(ctx, snap)
	err = storage.LockUntil(ctx, &v.making)
	if err != nil {
		return false, err
	}
	defer v.making.Unlock()
	follows := v.Follows() && v.grows(snap)
	state := v.join(snap, follows)
	if state != versionClosed {
		return state == versionCurrent, nil
	}
	s, err := v.show(ctx, snap, false)
	if err != nil {
		return false, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.state = versionCurrent
	v.handles = 1
	v.version = s.version
	v.attr = s.attr
	v.follows = follows
	v.serial = snap.Serial()
	return true, nil
}

// join returns the state for a new handle, as stateFor, and adds the handle if that is versionCurrent.
func (v *sharedVersion) join(snap *sessioncore.Snapshot, follows bool) versionState {
	v.mu.Lock()
	defer v.mu.Unlock()
	state := v.stateFor(snap, follows)
	if state == versionCurrent {
		v.handles++
	}
	return state
}

// update makes the handles continue with the version of a newer snapshot, if that continues theirs. If ctx
// ends, it changes nothing, and the next caller retries.
func (v *sharedVersion) update(ctx context.Context, snap *sessioncore.Snapshot) {
	isOld, _ := v.isOld(snap)
	if !isOld {
		return
	}
	err := storage.LockUntil(ctx, &v.making)
	if err != nil {
		return
	}
	defer v.making.Unlock()
	isOld, follows := v.isOld(snap) // another caller may have updated it meanwhile
	if !isOld {
		return
	}
	newest, err := v.show(ctx, snap, follows)
	if err != nil && ctx.Err() != nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.serial = snap.Serial()
	hasHandles := v.state != versionClosed // the last one may have been released meanwhile
	if hasHandles {
		v.state = versionLeft
	}
	if err != nil {
		return // the handles keep their version
	}
	if !hasHandles || !newest.version.Continues(v.version) {
		newest.version.Close()
		return
	}
	v.version.Close()
	v.version = newest.version
	v.attr = newest.attr
	if !newest.isLonger {
		v.state = versionCurrent
	}
}

// isOld reports whether there are handles with a version that was not compared with a snapshot, and whether
// the handles follow newer versions.
func (v *sharedVersion) isOld(snap *sessioncore.Snapshot) (old, follows bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	hasHandles := v.state != versionClosed
	isCompared := v.serial == snap.Serial()
	return hasHandles && !isCompared, v.follows
}

// stat returns the attributes of the handles' version, after an update, or without handles the result of
// measure. With handles no signal ends it: readers at the end would take an old size for the end of the file.
// With handles a session that cannot be read is no error either.
func (v *sharedVersion) stat(
	ctx context.Context, measure func(context.Context, *sessioncore.Snapshot) (Attr, error),
) (Attr, error) {
	_, isOpen := v.openAttr()
	if isOpen {
		ctx = context.WithoutCancel(ctx)
	}
	snap, err := v.session.Acquire(ctx)
	if err == nil {
		defer snap.Release()
		v.update(ctx, snap)
	}
	a, isOpen := v.openAttr()
	if isOpen {
		return a, nil
	}
	if err != nil {
		return Attr{}, err
	}
	return measure(ctx, snap)
}

// openAttr returns the attributes of the handles' version. isOpen is false without handles.
func (v *sharedVersion) openAttr() (a Attr, isOpen bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.attr, v.state != versionClosed
}

// advance updates to the newest version if a read up to the offset end goes beyond the version. After an error
// the reader gets the old one. There must be a handle.
func (v *sharedVersion) advance(ctx context.Context, end int64) {
	v.mu.RLock()
	isBeyond := end > v.version.Size()
	v.mu.RUnlock()
	if !isBeyond {
		return
	}
	snap, err := v.session.Acquire(ctx)
	if err != nil {
		return
	}
	defer snap.Release()
	v.update(ctx, snap)
}

// release removes a handle; the last one closes the version.
func (v *sharedVersion) release() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.handles--
	if v.handles == 0 {
		v.state = versionClosed
		v.version.Close()
		v.version = nil
	}
}

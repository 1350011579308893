package writer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/storage"
)

const (
	// maxWaiting is the maximum number of sessions in memory. They stay there until they go to disk or the mount
	// ends; a runaway script must not fill the memory with them.
	maxWaiting = 1000
	// maxWaitingBytes is the maximum total size of the sessions in memory, enough for many long prompts. What
	// exceeds it goes to disk at once: nothing is refused, and nothing is lost.
	maxWaitingBytes = 24 << 20
)

// ErrTooMany means that the maximum number of sessions wait.
var ErrTooMany = errors.New("too many new sessions wait for their first answer")

// errNoRoom means that a session cannot be created or grow in memory, and has to go to disk.
var errNoRoom = errors.New("no room in memory")

// Waiting are the new sessions that are not on disk yet: an assistant's message, an fsync or the end of the mount puts them
// there (docs/design.md section 2, new-session). It shows them beside the files on disk. A nil *Waiting has no sessions,
// and no room for any.
type Waiting struct {
	storage.Files // those on disk

	locks storage.FIFOMutexes[string]

	mu     sync.Mutex // guards the fields below, and what is in files
	files  map[string]*waitingFile
	dirs   map[string]storage.Token // what the directories are on disk that sessions wait in
	bytes  int64                    // the sum of their sizes
	hold   budget.Hold              // bytes
	serial int64                    // number of changes, for tokens
	ended  bool                     // no more data may be kept in memory only
}

// waitingFile is a session in memory.
type waitingFile struct {
	data []byte // only appended to under its lock, as readers keep slices of it
	stat storage.Stat
	made int64 // nanoseconds since the epoch
	used bool  // it was created with content or appended to, which must not be lost
}

var _ storage.Files = (*Waiting)(nil)

// NewWaiting returns a Waiting beside the files on disk. What is in memory is a part of limit, which may be nil.
func NewWaiting(disk storage.Files, limit *budget.Budget) *Waiting {
	return &Waiting{Files: disk, files: map[string]*waitingFile{}, dirs: map[string]storage.Token{}, hold: limit.Kept()}
}

// Has reports whether a session is in memory only.
func (w *Waiting) Has(name string) bool { return w.find(name) != nil }

// find returns a session in memory, nil if there is none.
func (w *Waiting) find(name string) *waitingFile {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.files[name]
}

// end makes everything that is written from now on go to disk.
func (w *Waiting) end() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
}

// Names returns the names of the sessions in memory, sorted.
func (w *Waiting) Names() []string {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.files))
}

// Stat implements storage.Files. The token of a directory changes with the sessions below it.
func (w *Waiting) Stat(name string) (storage.Stat, error) {
	if f := w.find(name); f != nil {
		return (&waitingObject{w, f}).Stat()
	}
	st, err := w.Files.Stat(name)
	if err == nil && st.Kind != storage.KindDir {
		return st, nil
	}
	w.see(name, st)
	_, dir := w.in(name)
	return dir.over(st, err)
}

// see notes what a directory is on disk. The sessions that wait in one that had another name go with it: clients rename
// directories of sessions when they start.
func (w *Waiting) see(name string, st storage.Stat) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for dir, is := range w.dirs {
		switch {
		case st.Kind != storage.KindDir || is.Inode != 0 && !is.SameObject(st.Token):
		case dir == name:
			w.dirs[dir] = st.Token
		case is.Inode != 0 && w.rename(dir, name):
			delete(w.dirs, dir)
			w.dirs[name] = st.Token
		}
	}
}

// rename gives the sessions in a directory the names that they have in another one, all or none: a writer that holds the lock
// of one counts on its name, and at the end each is put on disk by the name that it has then. Callers must hold w.mu.
func (w *Waiting) rename(dir, to string) bool {
	if w.ended {
		return false
	}
	var names []string
	for name := range w.files {
		if storage.Dir(name) != dir {
			continue
		}
		leave, ok := w.locks.TryLock(name)
		if !ok {
			return false
		}
		defer leave()
		names = append(names, name)
	}
	for _, name := range names {
		w.files[path.Join(to, path.Base(name))] = w.files[name] // names have ids, and are nowhere twice
		delete(w.files, name)
	}
	return true
}

// List implements storage.Files. A name that is on disk too comes once.
func (w *Waiting) List(dir string, only []string, f func(storage.Item) bool) error {
	names, _ := w.in(dir)
	if only != nil && names != nil {
		return storage.ListOnly(w, dir, only, f)
	}
	more := true
	err := w.Files.List(dir, only, func(item storage.Item) bool {
		if waits, ok := names[item.Name]; ok {
			delete(names, item.Name)
			state := item.State
			item.State = func() (storage.Stat, error) { return waits.over(state()) }
		}
		more = f(item)
		return more
	})
	if err != nil && len(names) == 0 {
		return err
	}
	for name, waits := range names {
		if !more || !f(storage.Item{Name: name, Kind: waits.Kind, State: func() (storage.Stat, error) { return waits.Stat, nil }}) {
			break
		}
	}
	return nil
}

// waitingStat is the state of a session in memory, or of a directory for those below it; zero if there are none.
type waitingStat struct{ storage.Stat }

// over returns the state of a name that is on disk too, unless err says otherwise.
func (s waitingStat) over(disk storage.Stat, err error) (storage.Stat, error) {
	switch {
	case s.Kind == storage.KindFile, s.Kind == storage.KindDir && err != nil:
		return s.Stat, nil
	case s.Kind == storage.KindDir:
		disk.Modified, disk.Changed = max(disk.Modified, s.Modified), max(disk.Changed, s.Changed)
	}
	return disk, err
}

// in returns what waits directly in a directory, by name, and the state of the directory.
func (w *Waiting) in(dir string) (names map[string]waitingStat, st waitingStat) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, f := range w.files {
		below, ok := strings.CutPrefix(name, dir+"/")
		if !ok && dir != "" {
			continue
		} else if dir == "" {
			below = name
		}
		if names == nil {
			names = map[string]waitingStat{}
		}
		st = st.with(f, dir)
		if base, _, deeper := strings.Cut(below, "/"); deeper {
			names[base] = names[base].with(f, path.Join(dir, base))
		} else {
			names[base] = waitingStat{f.stat}
		}
	}
	return names, st
}

// with returns the state of a directory with one more session below it.
func (s waitingStat) with(f *waitingFile, dir string) waitingStat {
	made := max(s.Modified, f.made)
	return waitingStat{storage.Stat{
		Token: storage.Token{Inode: xxhash.Sum64String(dir), Modified: made, Changed: made},
		Kind:  storage.KindDir, Mode: storage.DirMode, UID: f.stat.UID, GID: f.stat.GID,
	}}
}

// Open implements storage.Files.
func (w *Waiting) Open(name string) (storage.Object, error) {
	if f := w.find(name); f != nil {
		return &waitingObject{w, f}, nil
	}
	return w.Files.Open(name)
}

// waitingObject is an open session in memory.
type waitingObject struct {
	w    *Waiting
	file *waitingFile
}

// ReadAt implements storage.Object.
func (o *waitingObject) ReadAt(p []byte, off int64) (int, error) {
	o.w.mu.Lock()
	data := o.file.data
	o.w.mu.Unlock()
	return bytes.NewReader(data).ReadAt(p, off)
}

// Stat implements storage.Object.
func (o *waitingObject) Stat() (storage.Stat, error) {
	o.w.mu.Lock()
	defer o.w.mu.Unlock()
	return o.file.stat, nil
}

// Close implements storage.Object.
func (*waitingObject) Close() error { return nil }

// lock takes the lock of a session. No other process sees it, as none knows of the session.
func (w *Waiting) lock(ctx context.Context, name string) (unlock func() error, err error) {
	ctx, cancel := storage.WithLimit(ctx)
	defer cancel()
	_, leave, err := w.locks.Lock(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, name)
	}
	return sync.OnceValue(func() error { leave(); return nil }), nil
}

// add adds a session, whose user and group are those of owner. used says that it has more than a header, which must not be
// lost. The error is ErrTooMany, errNoRoom, or wraps fs.ErrExist.
func (w *Waiting) add(name string, owner storage.Stat, data []byte, used bool) error {
	in, _ := w.Files.Stat(storage.Dir(name)) // which need not be there yet
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.files[name] != nil:
		return fmt.Errorf("%w: %s", fs.ErrExist, name)
	case used && !w.hasRoom(len(data)):
		return errNoRoom
	case len(w.files) >= maxWaiting:
		return fmt.Errorf("%w: %d; sync FILE of a session's append puts it on disk", ErrTooMany, len(w.files))
	}
	if dir := storage.Dir(name); w.dirs[dir].Inode == 0 {
		w.dirs[dir] = in.Token
	}
	w.put(name, waitingFile{
		data: data, made: time.Now().UnixNano(), used: used,
		stat: storage.Stat{Kind: storage.KindFile, Mode: storage.FileMode, UID: owner.UID, GID: owner.GID},
	})
	return nil
}

// append adds data to a session. The error is errNoRoom if it has to go to disk with the data. Callers must hold its lock.
func (w *Waiting) append(name string, data []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.hasRoom(len(data)) {
		return errNoRoom
	}
	f := w.files[name]
	f.data, f.used = append(f.data, data...), true
	w.touch(f)
	return nil
}

// replace gives a session another content. Callers must hold its lock.
func (w *Waiting) replace(name string, data []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := *w.files[name]
	w.bytes -= int64(len(f.data))
	f.data = data
	w.put(name, f)
}

// put gives a name to a new file. Callers must hold w.mu.
func (w *Waiting) put(name string, f waitingFile) {
	w.serial++
	f.stat.Inode, f.stat.Size = uint64(w.serial), 0
	w.touch(&f)
	w.files[name] = &f
}

// touch counts what is new in a session, and gives it a new token. Callers must hold w.mu.
func (w *Waiting) touch(f *waitingFile) {
	w.bytes += int64(len(f.data)) - f.stat.Size
	w.hold.Set(w.bytes)
	w.serial++
	f.stat.Size, f.stat.Modified, f.stat.Changed = int64(len(f.data)), time.Now().UnixNano(), w.serial
}

// forget removes a session that has gone to disk.
func (w *Waiting) forget(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bytes -= int64(len(w.files[name].data))
	w.hold.Set(w.bytes)
	delete(w.files, name)
	dir := storage.Dir(name)
	for other := range w.files {
		if storage.Dir(other) == dir {
			return
		}
	}
	delete(w.dirs, dir)
}

// hasRoom reports whether n more bytes may be kept in memory only. Callers must hold w.mu.
func (w *Waiting) hasRoom(n int) bool {
	size := w.bytes + int64(n)
	return !w.ended && size <= maxWaitingBytes && w.hold.Resize(size) == nil
}

package listing

import (
	"errors"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
)

// Listing knows the sessions of a storage, as the client's list shows them (docs/design.md section 5). It reads
// nothing before it is asked, and then only what changed since it was asked last: of a file that its stat
// shows to be the same nothing is read again.
//
// It looks in two ways. Look compares the state of every file, which is exact and costs a system call for
// each. What needs a few sessions only, known by id or working directory, compares the directories and
// the files in question: a directory whose times did not change has the same names. That a file which is
// in none of these was overwritten in place with another id or working directory is seen at the next
// Look; clients never do that.
type Listing struct {
	store *sessioncore.Store
	root  string // the storage's path, as clients write it

	// mu guards what follows, and is held while the storage is looked at. Lock order: Listing.mu, Session.mu.
	mu sync.Mutex
	// dirs are the directories that hold sessions, by name; "" is the storage's root.
	dirs   map[string]*sessionDir
	looks  int          // so far
	newest storage.Stat // of the root, with the newest times of all directories
	// unsettled are files that are looked at each time: they may become sessions, or others, by growth.
	unsettled map[*sessionFile]bool
	sessions  *Sessions // nil: to be made anew
	long      int       // bytes of long first messages that are kept
	lookup    lookup
}

// sessionDir is a directory and the session files that are directly in it.
type sessionDir struct {
	name   string
	stat   storage.Stat // when its names were read
	readAt int64        // ns since the epoch
	seen   int          // at which look it was there last
	files  []*sessionFile
	names  []string // of the files, without the directory
	dirs   []string // the directories in it; the root's alone are looked at
}

// sessionFile is a file whose name is a session's.
type sessionFile struct {
	name   string
	token  storage.Token // when its prefix was read
	readAt int64
	seen   int   // at which look its directory was read last
	info   *Info // nil: the client does not list it
}

// New returns the listing of a store's sessions. root is the path of the storage as clients write
// it into breadcrumbs and parentSession.
func New(store *sessioncore.Store, root string) *Listing {
	return &Listing{store: store, root: root, dirs: map[string]*sessionDir{}, unsettled: map[*sessionFile]bool{}}
}

// Sessions is what a Look found. It does not change.
type Sessions struct {
	listing *Listing
	infos   []*Info
	stat    storage.Stat
	bytes   int64 // of index.jsonl
}

// All returns the sessions, most recently modified first. The caller does not change the list.
func (s *Sessions) All() []*Info { return s.infos }

// Stat tells about the directory of all sessions, with the newest times of all that is in it.
func (s *Sessions) Stat() storage.Stat { return s.stat }

// IndexSize is the size of index.jsonl in bytes.
func (s *Sessions) IndexSize() int64 { return s.bytes }

// Look returns all sessions as they are now.
func (l *Listing) Look() (*Sessions, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.look(true); err != nil {
		return nil, err
	}
	if l.sessions == nil {
		l.sessions = l.collect()
	}
	return l.sessions, nil
}

// Stat tells about the directory of all sessions, with the newest times of the directories in it: when a
// session came or went last.
func (l *Listing) Stat() (storage.Stat, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.look(false)
	return l.newest, err
}

// collect makes the list from what is known. Locked by the caller, as all that follows.
func (l *Listing) collect() *Sessions {
	s := &Sessions{listing: l, stat: l.newest}
	for _, d := range l.dirs {
		for _, f := range d.files {
			if f.info != nil {
				s.infos = append(s.infos, f.info)
				s.bytes += int64(f.info.lineSize)
				s.stat.Modified = max(s.stat.Modified, f.info.Stat.Modified)
				s.stat.Changed = max(s.stat.Changed, f.info.Stat.Changed)
			}
		}
	}
	slices.SortFunc(s.infos, (*Info).compare)
	return s
}

// look brings what is known up to date: every file, or only the directories' names and the files that are
// unsettled.
func (l *Listing) look(all bool) error {
	l.looks++
	all = all || singleCost*len(l.unsettled) > l.count()
	var stale []*sessionFile
	root, err := l.apply("", l.fetch("", all), &stale)
	if err != nil {
		return err
	}
	looks := make([]dirScan, len(root.dirs))
	workers := 1
	if all {
		workers = runtime.GOMAXPROCS(0)
	}
	if err := parallel(len(looks), workers, func(i int) { looks[i] = l.fetch(root.dirs[i], all) }); err != nil {
		return err
	}
	newest := root.stat
	root.seen = l.looks
	there := 1
	for i, name := range root.dirs {
		d, err := l.apply(name, looks[i], &stale)
		switch {
		case err == nil:
			d.seen = l.looks
			there++
			newest.Modified = max(newest.Modified, d.stat.Modified)
			newest.Changed = max(newest.Changed, d.stat.Changed)
		case !unreachable(err):
			return err
		}
	}
	if there != len(l.dirs) {
		for _, d := range l.dirs {
			if d.seen != l.looks {
				l.forget(d)
			}
		}
	}
	if l.newest != newest {
		l.newest = newest
		l.sessions = nil
	}
	if !all {
		for f := range l.unsettled {
			if f.seen == l.looks {
				continue // with its directory
			}
			if st, err := l.store.Storage().Stat(f.name); err == nil && st.Kind == storage.KindFile && f.differs(st.Token) {
				stale = append(stale, f)
			}
		}
	}
	return l.read(stale)
}

// unreachable: it is not there, or not ours to see. The client's list passes over it as well.
func unreachable(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, storage.ErrNotRegular) ||
		errors.Is(err, unix.ENAMETOOLONG)
}

// dirScan is what a look at a directory found.
type dirScan struct {
	stat  storage.Stat
	at    int64 // ns since the epoch
	err   error
	same  bool               // its names are those that are known
	stale []*sessionFile     // then: its files that are others now, where all are looked at
	gone  []*sessionFile     // likewise those that are no files any more
	items []storage.StatItem // else: what is in it
}

// fetch looks at a directory. It changes nothing.
func (l *Listing) fetch(name string, all bool) (k dirScan) {
	files := l.store.Storage()
	k.at = time.Now().UnixNano()
	if k.stat, k.err = files.Stat(name); k.err != nil {
		return k
	}
	if k.stat.Kind != storage.KindDir {
		k.err = storage.ErrNotRegular
		return k
	}
	d := l.dirs[name]
	k.same = d != nil && d.stat == k.stat && !k.stat.Token.Racy(d.readAt)
	switch {
	case k.same && all && len(d.names) > 0:
		k.err = storage.StatNames(files, name, d.names, func(i int, st storage.Stat) {
			switch f := d.files[i]; {
			case st.Kind != storage.KindFile:
				k.gone = append(k.gone, f)
			case f.differs(st.Token):
				k.stale = append(k.stale, f)
			}
		})
	case !k.same:
		k.items, k.err = storage.ListStat(files, name, func(item storage.Item) bool {
			return isSessionFile(item) || name == "" && isScope(item)
		})
	}
	return k
}

// apply notes what a look found, and adds the files that are to be read to stale.
func (l *Listing) apply(name string, k dirScan, stale *[]*sessionFile) (*sessionDir, error) {
	if k.err != nil {
		return nil, k.err
	}
	d := l.dirs[name]
	if d == nil {
		d = &sessionDir{name: name}
		l.dirs[name] = d
	}
	if !k.same {
		d.stat, d.readAt = k.stat, k.at
		l.take(d, k.items, stale)
	}
	for _, f := range k.gone {
		l.install(f, readResult{})
	}
	*stale = append(*stale, k.stale...)
	return d, nil
}

// isSessionFile: the client's list takes no hidden names and no links.
func isSessionFile(item storage.Item) bool {
	return item.Kind == storage.KindFile && item.Name[0] != '.' && strings.HasSuffix(item.Name, sessioncore.FileEnding)
}

func isScope(item storage.Item) bool { return item.Kind == storage.KindDir && item.Name[0] != '.' }

// take takes over what is in a directory now.
func (l *Listing) take(d *sessionDir, items []storage.StatItem, stale *[]*sessionFile) {
	known := make(map[string]*sessionFile, len(d.files))
	for i, f := range d.files {
		known[d.names[i]] = f
	}
	d.dirs, d.files, d.names = nil, nil, nil
	for _, item := range items {
		switch item.Kind {
		case storage.KindDir:
			d.dirs = append(d.dirs, item.Name)
		case storage.KindFile:
			f := known[item.Name]
			if f == nil {
				f = &sessionFile{name: path.Join(d.name, item.Name)}
				l.unsettled[f] = true
			}
			f.seen = l.looks
			delete(known, item.Name)
			d.files = append(d.files, f)
			d.names = append(d.names, path.Base(f.name)) // which shares its memory
			if f.differs(item.Token) {
				*stale = append(*stale, f)
			}
		}
	}
	for _, f := range known {
		l.drop(f)
	}
}

// differs reports whether a file with that token has to be read.
func (f *sessionFile) differs(t storage.Token) bool { return f.token != t || t.Racy(f.readAt) }

// forget lets a directory go.
func (l *Listing) forget(d *sessionDir) {
	delete(l.dirs, d.name)
	for _, f := range d.files {
		l.drop(f)
	}
}

// drop lets a file go whose name is gone.
func (l *Listing) drop(f *sessionFile) {
	delete(l.unsettled, f)
	if f.info != nil {
		l.long -= f.info.long()
		f.info = nil
		l.sessions, l.lookup = nil, lookup{}
	}
}

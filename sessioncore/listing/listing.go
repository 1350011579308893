package listing

import (
	"context"
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

// Listing finds the sessions of a storage, as the client's list shows them (docs/design.md section 5). It reads
// nothing before it is asked, and then only what changed since the last time: a file whose Stat is unchanged is not
// read again. It is safe for concurrent use.
//
// Look checks every file, which is exact and costs a system call for each. Methods that need only a few sessions, by
// id or working directory, check the directories and the files in question: a directory whose times did not change
// has the same names. If any other file was overwritten in place with another id or working directory, only the next
// Look notices; clients never do that.
type Listing struct {
	store *sessioncore.Store
	root  string // the storage's path, as clients write it
	flat  bool   // pi's sessions lie in the storage itself
	// shownIn is the directory of the mount that shows the storage.
	shownIn string

	// mu guards the fields below, and is held while the storage is read. Lock order: Listing.mu, Session.mu.
	mu sync.Mutex
	// dirs has the directories of sessions by name; "" is the storage's root.
	dirs   map[string]*sessionDir
	looks  int          // number of calls of look
	newest storage.Stat // of the root, with the latest times of all directories
	// unsettled has the files that every look checks: by growing they may become sessions, or other ones.
	unsettled map[*sessionFile]bool
	sessions  *Sessions // nil if it has to be collected again
	long      int       // bytes of long first messages kept in memory
	lookup    lookup

	scopes scopes
}

// sessionDir is a directory and the session files directly in it.
type sessionDir struct {
	name   string
	stat   storage.Stat // when its names were read
	readAt int64        // nanoseconds since the epoch
	seen   int          // value of Listing.looks when it was last there
	files  []*sessionFile
	names  []string // base names of files
	dirs   []string // names of its directories; only those of the root are read
}

// sessionFile is a file with the name of a session file.
type sessionFile struct {
	name   string
	token  storage.Token // when its prefix was read
	readAt int64
	seen   int   // value of Listing.looks when its directory was last read
	info   *Info // nil if the client does not list it
}

// New returns a Listing of the store's sessions. root is the path of the storage as clients write it into breadcrumbs
// and parentSession.
func New(store *sessioncore.Store, root string) *Listing {
	return NewIn(store, root, "sessions")
}

// NewIn is New for sessions that are shown in another directory of the mount than sessions/.
func NewIn(store *sessioncore.Store, root, shownIn string) *Listing {
	return &Listing{store: store, root: root, shownIn: shownIn, dirs: map[string]*sessionDir{}, unsettled: map[*sessionFile]bool{}}
}

// Path returns the path in the mount of the directory that shows a session, from the mount's root.
func (l *Listing) Path(s *sessioncore.Session) string {
	return l.shownIn + "/" + strings.TrimSuffix(s.Name(), sessioncore.FileEnding)
}

// SetFlat says that pi was given the storage as a directory for all its sessions. It must be called before l is used.
func (l *Listing) SetFlat(flat bool) { l.flat = flat }

// Sessions is the result of a Look. It does not change.
type Sessions struct {
	listing *Listing
	infos   []*Info
	stat    storage.Stat
	bytes   int64 // size of index.jsonl
}

// All returns the sessions, most recently modified first. Callers must not modify the slice.
func (s *Sessions) All() []*Info { return s.infos }

// Stat returns the Stat of the sessions' directory, with the latest times of everything in it.
func (s *Sessions) Stat() storage.Stat { return s.stat }

// IndexSize returns the size of index.jsonl in bytes.
func (s *Sessions) IndexSize() int64 { return s.bytes }

// Look returns all sessions as they are now.
func (l *Listing) Look(ctx context.Context) (*Sessions, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.look(ctx, true); err != nil {
		return nil, err
	}
	return l.collected(), nil
}

// Known returns the sessions as they were when somebody looked last.
func (l *Listing) Known() *Sessions {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.collected()
}

// collected returns the sorted list of the known sessions, which is made anew if it changed.
func (l *Listing) collected() *Sessions {
	if l.sessions == nil {
		l.sessions = l.collect()
	}
	return l.sessions
}

// IsCurrent reports whether the file of a session is as it was when the Info was made.
func (l *Listing) IsCurrent(i *Info) bool {
	st, err := l.store.Storage().Stat(i.Name)
	return err == nil && st.Token == i.Stat.Token
}

// collect returns the list of the known sessions. Callers of it and of the methods below must hold l.mu.
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

// look brings l up to date. It checks every file if all is set, and otherwise only the names in the directories and
// the unsettled files.
func (l *Listing) look(ctx context.Context, all bool) error {
	l.looks++
	all = all || singleCost*len(l.unsettled) > l.count()
	var stale []*sessionFile
	root, err := l.apply("", l.fetch("", all), &stale)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
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
				continue // checked with its directory
			}
			if st, err := l.store.Storage().Stat(f.name); err == nil && st.Kind == storage.KindFile && f.differs(st.Token) {
				stale = append(stale, f)
			}
		}
	}
	return l.read(ctx, stale)
}

// unreachable reports whether err means that a file does not exist or may not be read. The client's list skips such
// files as well.
func unreachable(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, storage.ErrNotRegular) ||
		errors.Is(err, unix.ENAMETOOLONG)
}

// dirScan is the result of fetch.
type dirScan struct {
	stat  storage.Stat
	at    int64 // nanoseconds since the epoch
	err   error
	same  bool               // the directory has the same names as before
	stale []*sessionFile     // if same and all: files that have to be read
	gone  []*sessionFile     // if same and all: names that are no longer files
	items []storage.StatItem // if not same: what is in the directory
}

// fetch reads the state of a directory. It does not modify l.
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

// apply stores the result of fetch, and appends the files that have to be read to stale.
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

// isSessionFile reports whether the client's list takes an item for a session file: it skips hidden names and links.
func isSessionFile(item storage.Item) bool {
	return item.Kind == storage.KindFile && item.Name[0] != '.' && strings.HasSuffix(item.Name, sessioncore.FileEnding)
}

func isScope(item storage.Item) bool { return item.Kind == storage.KindDir && item.Name[0] != '.' }

// take updates d to the items that are in the directory now.
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

// differs reports whether a file that now has this token has to be read.
func (f *sessionFile) differs(t storage.Token) bool { return f.token != t || t.Racy(f.readAt) }

// forget removes a directory and its files.
func (l *Listing) forget(d *sessionDir) {
	delete(l.dirs, d.name)
	for _, f := range d.files {
		l.drop(f)
	}
}

// drop removes a file whose name is gone.
func (l *Listing) drop(f *sessionFile) {
	delete(l.unsettled, f)
	if f.info != nil {
		l.long -= f.info.long()
		f.info = nil
		l.sessions, l.lookup = nil, lookup{}
	}
}

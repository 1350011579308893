package listing

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"
	"sync"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
)

// Listing finds the sessions of a storage, as the client's list shows them (docs/design.md section 5). It reads
// nothing before it is asked, and then only what changed since the last time: a file whose Stat is unchanged is not
// read again. It is safe for concurrent use.
//
// Sessions checks every file, which is exact and costs a system call for each. Methods that need only a few sessions, by
// id or working directory, check the directories and the files in question: a directory whose times did not change
// has the same names. If any other file was overwritten in place with another id or working directory, only the next
// call of Sessions notices; clients never do that.
type Listing struct {
	store *sessioncore.Store
	root  string // the storage's path, as clients write it
	// tops are the directories in which sessions lie, or directories of them: "", the storage's root, or one for each
	// agent, or the directories in the root (nil), one for each person.
	tops []string
	// nameOf returns the file of a path that a client wrote, "" if it is not of the storage; nil where root tells.
	nameOf func(path string) string
	// shownIn is the directory of the mount that shows the storage.
	shownIn string

	// mu guards the fields below, and is held while the storage is read. Lock order: Listing.mu, Session.mu.
	mu sync.Mutex
	// dirs has the directories of sessions by name; "" is the storage's root.
	dirs     map[string]*sessionDir
	newest   storage.Stat // of the root, with the latest times of all directories
	sessions *Sessions    // nil if it has to be collected again
	keys     *keys        // nil if they have to be collected again
}

// New returns a Listing of the store's sessions. root is the path of the storage as clients write it into breadcrumbs
// and parentSession.
func New(store *sessioncore.Store, root string) *Listing {
	return NewIn(store, root, "sessions")
}

// NewIn is New for sessions that are shown in another directory of the mount than sessions/.
func NewIn(store *sessioncore.Store, root, shownIn string) *Listing {
	return &Listing{store: store, root: root, shownIn: shownIn, tops: []string{""}, dirs: map[string]*sessionDir{}}
}

// NewOf is New for the sessions of several agents, each in a directory of its own.
func NewOf(store *sessioncore.Store, agents ...string) *Listing {
	l := New(store, "")
	l.tops = agents
	return l
}

// SetPeople says that the sessions are those of several people, each in a directory of the storage's root, which paths as
// clients write them do not begin with. It must be called before l is used.
func (l *Listing) SetPeople(nameOf func(path string) string) { l.tops, l.nameOf = nil, nameOf }

// topDirs returns tops as they are now.
func (l *Listing) topDirs() (dirs []string, err error) {
	if l.nameOf == nil {
		return l.tops, nil
	}
	err = l.store.Storage().List("", nil, func(item storage.Item) bool {
		if isScope(item) {
			dirs = append(dirs, item.Name)
		}
		return true
	})
	slices.Sort(dirs)
	return dirs, err
}

// Path returns the path in the mount of the directory that shows a session, from the mount's root.
func (l *Listing) Path(s *sessioncore.Session) string { return l.PathOf(s.Name()) }

// PathOf is Path for the name of a session's file.
func (l *Listing) PathOf(file string) string {
	return l.shownIn + "/" + strings.TrimSuffix(file, sessioncore.FileEnding)
}

// Sessions is the result of [Listing.Sessions]. It does not change.
type Sessions struct {
	infos []*Info
	stat  storage.Stat
}

// All returns the sessions, most recently modified first. Callers must not modify the slice.
func (s *Sessions) All() []*Info { return s.infos }

// Stat returns the Stat of the sessions' directory, with the latest times of everything in it.
func (s *Sessions) Stat() storage.Stat { return s.stat }

// Sessions returns all sessions as they are now.
func (l *Listing) Sessions(ctx context.Context) (*Sessions, error) {
	if err := storage.LockUntil(ctx, &l.mu); err != nil {
		return nil, err
	}
	defer l.mu.Unlock()
	if err := l.refresh(ctx, true); err != nil {
		return nil, err
	}
	return l.collectSessions(), nil
}

// firstBatch is how many sessions Newest tells of at first: what a screen has. Each time it is twice as many.
const firstBatch = 64

// Newest calls each with all sessions but those of subagents, those whose files were modified last first, some at a time, as soon as they are read. It
// ends with an error of each.
func (l *Listing) Newest(ctx context.Context, each func([]*Info) error) error {
	if err := storage.LockUntil(ctx, &l.mu); err != nil {
		return err
	}
	defer l.mu.Unlock()
	looked := len(l.dirs) > 0
	files, err := l.scan(ctx, true)
	if looked && err == nil { // what is known is not read again
		if err = l.readPrefixes(ctx, files); err == nil {
			err = each(withoutSubagents(l.collectSessions().infos))
		}
		return err
	}
	slices.SortFunc(files, func(a, b *sessionFile) int {
		return cmp.Or(cmp.Compare(b.modified, a.modified), cmp.Compare(b.base, a.base))
	})
	for n := firstBatch; err == nil && len(files) > 0; n *= 2 {
		batch := files[:min(n, len(files))]
		files = files[len(batch):]
		if err = l.readPrefixes(ctx, batch); err == nil {
			var infos []*Info
			for _, f := range batch {
				if f.info != nil {
					infos = append(infos, f.info)
				}
			}
			err = each(withoutSubagents(infos))
		}
	}
	return err
}

// Newest returns the first n sessions that are not those of subagents.
func (s *Sessions) Newest(n int) []*Info {
	var newest []*Info
	for _, info := range s.infos {
		if len(newest) == n {
			break
		}
		if !info.IsSubagent() {
			newest = append(newest, info)
		}
	}
	return newest
}

func withoutSubagents(infos []*Info) []*Info {
	if !slices.ContainsFunc(infos, (*Info).IsSubagent) {
		return infos
	}
	return slices.DeleteFunc(slices.Clone(infos), (*Info).IsSubagent)
}

// Known returns the sessions as they were when somebody looked last.
func (l *Listing) Known() *Sessions {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.collectSessions()
}

// IsCurrent reports whether the file of a session is as it was when the Info was made.
func (l *Listing) IsCurrent(i *Info) bool {
	st, err := l.store.Storage().Stat(i.Name())
	return err == nil && st.Token == i.Stat.Token
}

// collectSessions returns the sorted list of the known sessions, which is made anew if it changed. Callers must hold l.mu.
func (l *Listing) collectSessions() *Sessions {
	if l.sessions != nil {
		return l.sessions
	}
	s := &Sessions{stat: l.newest}
	for f := range l.known {
		s.infos = append(s.infos, f.info)
		s.stat.Modified = max(s.stat.Modified, f.info.Stat.Modified)
		s.stat.Changed = max(s.stat.Changed, f.info.Stat.Changed)
	}
	slices.SortFunc(s.infos, (*Info).compare)
	l.sessions = s
	return s
}

// eachScope returns the state of the root, and calls f with each directory in it. It and what calls it look at no session:
// whoever lists the root of the mount asks here, however many sessions there are, and waits for nobody who looks at them.
func (l *Listing) eachScope(f func(name string, dir storage.Stat)) (root storage.Stat, err error) {
	if root, err = l.store.Storage().Stat(""); err != nil {
		return root, err
	}
	if root.Kind != storage.KindDir {
		return root, storage.ErrNotRegular
	}
	tops, err := l.topDirs()
	if err != nil {
		return root, err
	}
	for _, top := range tops {
		dirs, err := storage.ListStat(l.store.Storage(), top, isScope)
		if err != nil && !(l.several() && unreachable(err)) {
			return root, err
		}
		for _, d := range dirs {
			f(path.Join(top, d.Name), d.Stat)
		}
	}
	return root, nil
}

// several reports whether the sessions are those of several agents or people, of which some may not be there.
func (l *Listing) several() bool { return l.nameOf != nil || l.tops[0] != "" }

// Stat returns the Stat of the sessions' directory, with the latest times of the directories in it: when a session was
// last added or removed.
func (l *Listing) Stat(ctx context.Context) (storage.Stat, error) {
	var newest storage.Stat
	root, err := l.eachScope(func(_ string, dir storage.Stat) {
		newest.Modified = max(newest.Modified, dir.Modified)
		newest.Changed = max(newest.Changed, dir.Changed)
	})
	if err != nil {
		return root, err
	}
	root.Modified, root.Changed = max(root.Modified, newest.Modified), max(root.Changed, newest.Changed)
	return root, ctx.Err()
}

// Exceeds reports whether there are more than most session files. It looks at names alone, and at no more of them than it
// takes to know.
func (l *Listing) Exceeds(ctx context.Context, most int) (bool, error) {
	dirs, err := l.topDirs()
	if err != nil {
		return false, err
	}
	dirs = slices.Clone(dirs)
	if _, err := l.eachScope(func(name string, _ storage.Stat) { dirs = append(dirs, name) }); err != nil {
		return false, err
	}
	for _, name := range dirs {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		err := l.store.Storage().List(name, nil, func(item storage.Item) bool {
			if isSessionFile(item) {
				most--
			}
			return most >= 0
		})
		if most < 0 {
			return true, nil
		}
		if err != nil && !unreachable(err) {
			return false, err
		}
	}
	return false, nil
}

package listing

import (
	"context"
	"path"
	"slices"
	"strings"
	"sync"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
)

// Listing finds the sessions of a storage, as in the client's list (docs/design.md section 5). It
// reads only on request, and only files that changed since. It is safe for concurrent use.
//
// Sessions checks every file, which is exact and costs a system call for each. Methods for a few
// sessions, by id or working directory, check the directories and the files in question: a
// directory with unchanged times has the same names. If another file was overwritten in place with
// another id or working directory, only the next call of Sessions notices; clients never do that.
type Listing struct {
	store *sessioncore.Store
	root  string // the storage's path in texts of clients
	// tops are the directories of sessions or of their directories: "", the storage's root, or one
	// for each agent, or nil for the directories in the root, one for each person.
	tops []string
	// nameOf returns the file of a client's path, or ""; nil if root decides.
	nameOf func(path string) string
	// shownIn is the storage's directory in the mount.
	shownIn string
	// isBrief is set if l answers one question: see SetBrief.
	isBrief bool
	// isNamed reports whether a file's name is the id of its session; nil if no name is.
	isNamed func(file string) bool

	isStranger  func(name string) bool // see OnStrangers
	onStrangers func(names []string)   // see OnStrangers

	// mu guards the fields below; held while the storage is read, before Session.mu.
	mu sync.Mutex
	// dirs has the directories of sessions by name; "" is the storage's root.
	dirs      map[string]*sessionDir
	newest    storage.Stat  // of the root, with the latest times of all directories
	sessions  *Sessions     // nil if outdated
	views     [views]rows   // nil if outdated
	strangers []string      // see Strangers
	hasStarts bool          // readStarts has looked at all files
	tree      treeDirectory // the last one that a brief listing looked at
}

// New returns a Listing of the store's sessions. root is the path of the storage in breadcrumbs and
// parentSession of clients.
func New(store *sessioncore.Store, root string) *Listing {
	return NewIn(store, root, "sessions")
}

// NewIn is New for sessions in another directory of the mount than sessions/.
func NewIn(store *sessioncore.Store, root, shownIn string) *Listing {
	return &Listing{
		store:   store,
		root:    root,
		shownIn: shownIn,
		tops:    []string{""},
		dirs:    map[string]*sessionDir{},
	}
}

// NewOf is New for the sessions of several agents, each in its own directory.
func NewOf(store *sessioncore.Store, agents ...string) *Listing {
	l := New(store, "")
	l.tops = agents
	return l
}

// SetPeople makes the sessions several people's, each in a directory of the storage's root,
// with which paths of clients do not begin. It must be called before l is used.
func (l *Listing) SetPeople(nameOf func(path string) string) {
	l.tops = nil
	l.nameOf = nameOf
}

// topDirs returns the current tops. Those of several people are sorted.
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

// Path returns the path of a session's directory from the mount's root.
func (l *Listing) Path(s *sessioncore.Session) string { return l.PathOf(s.Name()) }

// PathOf is Path for the name of a session's file.
func (l *Listing) PathOf(file string) string {
	return l.shownIn + "/" + strings.TrimSuffix(file, sessioncore.FileEnding)
}

// Sessions is the immutable result of [Listing.Sessions].
type Sessions struct {
	infos     []*Info
	stat      storage.Stat
	indexOnce sync.Once
	indexSize int64 // set by IndexSize
}

// All returns the sessions, the latest modification first. Callers must not modify the slice.
func (s *Sessions) All() []*Info { return s.infos }

// Stat returns the Stat of the sessions' directory, with the latest times of its content.
func (s *Sessions) Stat() storage.Stat { return s.stat }

// Sessions returns all current sessions.
func (l *Listing) Sessions(ctx context.Context) (*Sessions, error) {
	err := storage.LockUntil(ctx, &l.mu)
	if err != nil {
		return nil, err
	}
	defer l.mu.Unlock()
	err = l.refresh(ctx, everyFile)
	if err != nil {
		return nil, err
	}
	return l.collectSessions(), nil
}

// ModifiedSince returns the sessions with files modified at or after a time, in nanoseconds
// since the epoch, in no order. It reads no others. After an error it returns none.
func (l *Listing) ModifiedSince(ctx context.Context, since int64) (infos []*Info, err error) {
	err = storage.LockUntil(ctx, &l.mu)
	if err != nil {
		return nil, err
	}
	defer l.mu.Unlock()
	stale, err := l.scan(ctx, everyFile)
	if err != nil {
		return nil, err
	}
	isOld := func(f *sessionFile) bool {
		return f.token.Modified < since
	}
	recent := slices.DeleteFunc(stale, isOld)
	err = l.readPrefixes(ctx, recent)
	l.reportStrangers()
	if err != nil {
		return nil, err
	}
	for f := range l.listedFiles {
		if f.info.Stat.Modified >= since {
			infos = append(infos, f.info)
		}
	}
	return infos, nil
}

// Newest returns the first n sessions that are not subagents'.
func (s *Sessions) Newest(n int) []*Info {
	infos := withoutSubagents(s.infos)
	return infos[:min(n, len(infos))]
}

// withoutSubagents returns the sessions that are no subagents'; infos itself if there are none.
func withoutSubagents(infos []*Info) []*Info {
	if !slices.ContainsFunc(infos, (*Info).IsSubagent) {
		return infos
	}
	return slices.DeleteFunc(slices.Clone(infos), (*Info).IsSubagent)
}

// Known returns the sessions of the last scan.
func (l *Listing) Known() *Sessions {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.collectSessions()
}

// IsCurrent reports whether a session's file is unchanged since its Info. It is false for a file that
// cannot be read.
func (l *Listing) IsCurrent(i *Info) bool {
	st, err := l.store.Storage().Stat(i.Name())
	return err == nil && st.Token == i.Stat.Token
}

// collectSessions returns the sorted list of the known sessions. Callers must hold l.mu.
func (l *Listing) collectSessions() *Sessions {
	if l.sessions != nil {
		return l.sessions
	}
	s := &Sessions{stat: l.newest}
	for f := range l.listedFiles {
		s.infos = append(s.infos, f.info)
		s.stat.Modified = max(s.stat.Modified, f.info.Stat.Modified)
		s.stat.Changed = max(s.stat.Changed, f.info.Stat.Changed)
	}
	slices.SortFunc(s.infos, (*Info).compare)
	l.sessions = s
	return s
}

// eachScope returns the state of the root, and calls f with each directory in it. It reads no
// sessions and takes no lock, so that listing the mount's root stays cheap.
func (l *Listing) eachScope(f func(name string, dir storage.Stat)) (root storage.Stat, err error) {
	root, err = l.store.Storage().Stat("")
	if err != nil {
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
		isLeftOut := l.hasSeveral() && unreachable(err) // the others are shown
		if err != nil && !isLeftOut {
			return root, err
		}
		for _, d := range dirs {
			f(path.Join(top, d.Name), d.Stat)
		}
	}
	return root, nil
}

// hasSeveral reports whether the sessions are of several agents or people.
func (l *Listing) hasSeveral() bool { return l.nameOf != nil || l.tops[0] != "" }

// Stat returns the Stat of the sessions' directory, with the times of the last addition or removal
// of a session.
func (l *Listing) Stat(ctx context.Context) (storage.Stat, error) {
	var newest storage.Stat
	root, err := l.eachScope(func(_ string, dir storage.Stat) {
		newest.Modified = max(newest.Modified, dir.Modified)
		newest.Changed = max(newest.Changed, dir.Changed)
	})
	if err != nil {
		return root, err
	}
	root.Modified = max(root.Modified, newest.Modified)
	root.Changed = max(root.Changed, newest.Changed)
	return root, ctx.Err()
}

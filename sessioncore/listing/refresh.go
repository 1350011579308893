package listing

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
)

// sessionDir is a directory and the session files directly in it. A listing scans two levels of them:
//
//	tops      "", the storage's root; or claude, codex of several agents
//	scopes    the directories in a top: project, claude/project
//
// A scan of a directory whose times are as they were looks only at known files, as far as the extent says.
type sessionDir struct {
	name    string
	shownIn string       // see Listing
	stat    storage.Stat // the directory's state when its names were read
	readAt  int64        // the time of that, in nanoseconds since the epoch; 0 if they were never read
	files   []*sessionFile
	dirs    []string // the scopes in a top; only a scan of a top reads them

	hasNoStarts atomic.Bool // sessions here cannot be read by readStart
}

// sessionFile is a file with the name of a session file.
type sessionFile struct {
	dir      *sessionDir
	name     string        // in the storage
	readAt   int64         // the time when its prefix was read
	info     *Info         // nil if the client does not list it
	unlisted *unlisted     // set if it was read and info is nil
	token    storage.Token // its state in the last scan that looked at it
	stale    bool          // it must be read before info counts
	start    *Info         // the result of readStart for token, of a stale file; or nil
}

// unlisted is a reading of a file that the client does not list.
type unlisted struct {
	token      storage.Token // when its prefix was read
	isStranger bool
}

// base returns the file's name without its directory.
func (f *sessionFile) base() string { return path.Base(f.name) }

// differs reports whether a file with this token must be read.
func (f *sessionFile) differs(t storage.Token) bool {
	var before storage.Token
	switch {
	case f.info != nil:
		before = f.info.Stat.Token
	case f.unlisted != nil:
		before = f.unlisted.token
	default:
		return true
	}
	return before != t || t.Racy(f.readAt)
}

// extent says which known files a scan looks at, besides those in directories that changed.
type extent int

const (
	onlyNames extent = iota // none
	unread                  // those that are to be read, or may become sessions by growing
	everyFile
)

// isOf reports whether a scan to this extent looks at a file.
func (x extent) isOf(f *sessionFile) bool {
	switch x {
	case everyFile:
		return true
	case unread:
		return f.stale || f.info == nil
	}
	return false
}

// lock locks l, and refreshes it by the names in the directories unless known is set. After an error l is
// not locked.
func (l *Listing) lock(ctx context.Context, known bool) error {
	err := storage.LockUntil(ctx, &l.mu)
	if err != nil || known {
		return err
	}
	err = l.refresh(ctx, unread)
	if err != nil {
		l.mu.Unlock()
	}
	return err
}

// refresh checks the names in the directories and the files of an extent, and reads those that
// changed. Callers must hold l.mu.
func (l *Listing) refresh(ctx context.Context, x extent) error {
	stale, err := l.scan(ctx, x)
	if err != nil {
		return err
	}
	err = l.readPrefixes(ctx, stale)
	if err == nil {
		l.reportStrangers()
	}
	return err
}

// scan is refresh, but returns the files that are to be read instead of reading them. With an error, which is
// the first one, the directories that could be scanned are up to date.
func (l *Listing) scan(ctx context.Context, x extent) ([]*sessionFile, error) {
	tops, err := l.scanTops(x)
	if err != nil {
		return nil, err
	}
	scopes, err := l.scanScopes(ctx, tops, x)
	stale, failed := l.applyScan(tops, scopes)
	if err == nil {
		err = failed
	}
	if len(l.strangers) > 0 { // some may be gone
		l.reportStrangers()
	}
	return stale, err
}

// scannedDir is a directory that was scanned, with the changes in it.
type scannedDir struct {
	dir     *sessionDir
	changes dirChanges
}

// knownDir returns a directory of the last scan, or a new one of that name.
func (l *Listing) knownDir(name string) *sessionDir {
	known := l.dirs[name]
	if known != nil {
		return known
	}
	return &sessionDir{name: name, shownIn: l.shownIn}
}

// scanTops scans the tops. If there are several, unreachable ones have an error in their changes, and no
// error is returned.
func (l *Listing) scanTops(x extent) (tops []scannedDir, err error) {
	names, err := l.topDirs()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		top := scannedDir{dir: l.knownDir(name)}
		top.changes = top.dir.scan(l.store.Storage(), x, true)
		failed := top.changes.err
		isLeftOut := l.hasSeveral() && unreachable(failed)
		if failed != nil && !isLeftOut {
			return nil, failed
		}
		tops = append(tops, top)
	}
	return tops, nil
}

// scanScopes scans the directories in the tops, several at a time. Once ctx is done, the other directories
// have no changes.
func (l *Listing) scanScopes(ctx context.Context, tops []scannedDir, x extent) (scopes []scannedDir, err error) {
	for _, top := range tops {
		if top.changes.err != nil {
			continue
		}
		for _, name := range top.dir.dirs {
			scopes = append(scopes, scannedDir{dir: l.knownDir(name)})
		}
	}
	err = storage.Parallel(len(scopes), runtime.GOMAXPROCS(0), func(i int) error {
		if ctx.Err() == nil {
			scopes[i].changes = scopes[i].dir.scan(l.store.Storage(), x, false)
		}
		return ctx.Err()
	})
	return scopes, err
}

// applyScan makes the scanned directories the known ones, except for unreachable ones, and forgets the lists
// that the changes make wrong. It returns the files that are to be read, and the first error of a directory.
func (l *Listing) applyScan(tops, scopes []scannedDir) (stale []*sessionFile, err error) {
	before := l.dirs
	l.dirs = map[string]*sessionDir{}
	newest := stateOfTops(tops)
	hasLost := false
	for _, scanned := range slices.Concat(tops, scopes) {
		changes := scanned.changes
		if unreachable(changes.err) {
			continue
		}
		if err == nil {
			err = changes.err
		}
		if changes.removed {
			hasLost = true
		}
		stale = append(stale, changes.stale...)
		d := scanned.dir
		l.dirs[d.name] = d
		newest.Modified = max(newest.Modified, d.stat.Modified)
		newest.Changed = max(newest.Changed, d.stat.Changed)
	}
	for name := range before {
		if l.dirs[name] == nil {
			hasLost = true
		}
	}
	if hasLost {
		l.views = [views]rows{}
	}
	if hasLost || l.newest != newest {
		l.sessions = nil
	}
	l.newest = newest
	return stale, err
}

// stateOfTops returns the state of the first top that is a directory.
func stateOfTops(tops []scannedDir) storage.Stat {
	for _, top := range tops {
		if top.dir.stat.Kind == storage.KindDir {
			return top.dir.stat
		}
	}
	return storage.Stat{}
}

// refreshFiles is refresh for a few files. A file that was removed is read, too, so that it is not listed.
func (l *Listing) refreshFiles(ctx context.Context, files []*sessionFile) error {
	isStale := make([]bool, len(files))
	err := storage.Parallel(len(files), runtime.GOMAXPROCS(0), func(i int) error {
		f := files[i]
		st, err := l.store.Storage().Stat(f.name)
		isStale[i] = err != nil || st.Kind != storage.KindFile || f.differs(st.Token)
		if err != nil && !unreachable(err) {
			return err
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	var stale []*sessionFile
	for i, f := range files {
		if isStale[i] {
			stale = append(stale, f)
		}
	}
	return l.readPrefixes(ctx, stale)
}

// unreachable reports whether a file does not exist or cannot be read. The client skips it, too.
func unreachable(err error) bool {
	for _, skipped := range []error{fs.ErrNotExist, fs.ErrPermission, storage.ErrNotRegular, unix.ENAMETOOLONG} {
		if errors.Is(err, skipped) {
			return true
		}
	}
	return false
}

// dirChanges are the changes in a directory since its last scan.
type dirChanges struct {
	err     error          // then there are no changes
	removed bool           // a session was removed
	stale   []*sessionFile // the files to read
}

// add adds a file that is to be read.
func (c *dirChanges) add(f *sessionFile) {
	f.stale = true
	c.stale = append(c.stale, f)
}

// scan checks the names of a directory if they may have changed, else the files of an extent. In a top it
// finds directories, too. An error changes nothing.
func (d *sessionDir) scan(files storage.Files, x extent, isTop bool) dirChanges {
	now := time.Now().UnixNano()
	st, err := files.Stat(d.name)
	if err == nil && st.Kind != storage.KindDir {
		err = storage.ErrNotRegular
	}
	if err != nil {
		return dirChanges{err: err}
	}
	isCurrent := d.readAt != 0 && d.stat == st && !st.Token.Racy(d.readAt)
	if isCurrent {
		return d.scanFiles(files, x)
	}
	items, err := storage.ListStat(files, d.name, func(item storage.Item) bool {
		if sessioncore.IsSession(item) {
			return true
		}
		return isTop && isScope(item)
	})
	if err != nil {
		return dirChanges{err: err}
	}
	d.stat = st
	d.readAt = now
	return d.setItems(items)
}

// scanFiles looks at the known files of an extent. A removed one is to be read.
func (d *sessionDir) scanFiles(files storage.Files, x extent) (c dirChanges) {
	var known []*sessionFile
	var names []string
	for _, f := range d.files {
		if x.isOf(f) {
			known = append(known, f)
			names = append(names, f.base())
		}
	}
	if len(known) == 0 {
		return c
	}
	next := 0 // the first of known that is not compared
	compare := func(item storage.Item) bool {
		for names[next] != item.Name { // the storage leaves out files that are removed
			c.add(known[next])
			next++
		}
		f := known[next]
		next++
		st, err := item.State()
		if err != nil {
			c.err = err
			f.token = storage.Token{}
			c.add(f)
			return false
		}
		f.token = st.Token
		if item.Kind != storage.KindFile || f.differs(st.Token) {
			c.add(f)
		}
		return true
	}
	failed := files.List(d.name, names, compare)
	for _, f := range known[next:] {
		c.add(f)
	}
	if c.err == nil {
		c.err = failed
	}
	return c
}

// isScope reports whether a name in a top is a directory of sessions.
func isScope(item storage.Item) bool { return item.Kind == storage.KindDir && item.Name[0] != '.' }

// setItems sets the files and directories of d to its current items, and returns the changes. A file that was
// there before keeps its Info.
func (d *sessionDir) setItems(items []storage.StatItem) (c dirChanges) {
	before := make(map[string]*sessionFile, len(d.files))
	for _, f := range d.files {
		before[f.base()] = f
	}
	d.dirs = nil
	d.files = nil
	for _, item := range items {
		if item.Kind == storage.KindDir {
			d.dirs = append(d.dirs, path.Join(d.name, item.Name))
			continue
		}
		f := before[item.Name]
		if f == nil {
			f = &sessionFile{dir: d, name: path.Join(d.name, item.Name)}
		}
		delete(before, item.Name)
		d.files = append(d.files, f)
		f.token = item.Token
		if f.differs(item.Token) {
			c.add(f)
		}
	}
	c.removed = len(before) > 0
	return c
}

const (
	// readersPerCPU is the number of concurrent reads for each processor; most of them wait.
	readersPerCPU = 4
	// readBatch is the number of files announced at once.
	readBatch = 1024
	// batchesAtOnce is the number of concurrent batches: one is announced while the other is read.
	batchesAtOnce = 2
)

// readResult is the result of reading a prefix.
type readResult struct {
	token      storage.Token
	at         int64 // the time when the file was read; 0 if it was not
	info       *Info // nil if the client does not list the file
	isStranger bool
}

// readPrefixes reads the prefixes of files, several at a time. It skips unreadable files until the
// next refresh. When ctx is done, the results so far stay, and a read under way ends in the background.
func (l *Listing) readPrefixes(ctx context.Context, files []*sessionFile) error {
	results := make([]readResult, len(files))
	batches := (len(files) + readBatch - 1) / readBatch // rounded up
	err := storage.Parallel(batches, batchesAtOnce, func(batch int) error {
		from := batch * readBatch
		to := min(len(files), from+readBatch)
		return l.readPrefixBatch(ctx, files[from:to], results[from:to])
	})
	for i, f := range files {
		if results[i].at != 0 {
			l.setInfo(f, results[i])
		}
	}
	if slices.ContainsFunc(files, (*sessionFile).isStranger) {
		l.reportStrangers()
	}
	return err
}

// readPrefixBatch is readPrefixes for one batch. It sets the results, and leaves the files as they are.
func (l *Listing) readPrefixBatch(ctx context.Context, batch []*sessionFile, results []readResult) error {
	l.readAhead(batch)
	readers := readersPerCPU * runtime.GOMAXPROCS(0)
	return storage.Parallel(len(batch), readers, func(i int) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		f := batch[i]
		before := f.info
		read := func() (readResult, error) {
			return l.readPrefix(f, before), nil
		}
		result, err := storage.Await(ctx, read, func(readResult) {})
		if err != nil {
			return err
		}
		results[i] = result
		return nil
	})
}

// readAhead announces files to the storage. An error here recurs when they are read.
func (l *Listing) readAhead(files []*sessionFile) {
	var err error
	defer storage.RecoverTo(&err)
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = f.name
	}
	l.store.Storage().ReadAhead(names)
}

// readPrefix reads the prefix of a file with the last Info before. A file that cannot be read is not listed:
// the result has a time alone. It uses nothing that l.mu guards.
func (l *Listing) readPrefix(f *sessionFile, before *Info) readResult {
	at := time.Now().UnixNano()
	info, st, err := l.readInfo(f, before)
	if errors.Is(err, storage.ErrStale) { // it was replaced, or a compressed file states a wrong size
		info, st, err = l.readInfo(f, before)
	}
	if err != nil {
		return readResult{at: at}
	}
	mayBeStranger := info == nil && st.Size > 0 && l.isStranger != nil
	return readResult{
		token:      st.Token,
		at:         at,
		info:       info,
		isStranger: mayBeStranger && l.isStranger(f.name),
	}
}

// setInfo stores the result for a file, and forgets the lists and tables that it changes. Callers must hold
// l.mu.
func (l *Listing) setInfo(f *sessionFile, r readResult) {
	old := f.info
	f.readAt = r.at
	f.unlisted = nil
	f.stale = false
	f.start = nil
	if r.info == nil {
		f.unlisted = &unlisted{token: r.token, isStranger: r.isStranger}
	}
	isUnlisted := old == nil && r.info == nil
	isAddedOrGone := old == nil || r.info == nil
	switch {
	case isUnlisted:
		return
	case isAddedOrGone:
		l.views = [views]rows{}
	case *old == *r.info: // old stays, so that the lists with it do
		return
	case old.ID != r.info.ID || old.Parent != r.info.Parent:
		l.views = [views]rows{}
	case old.CWD != r.info.CWD || ByCwd.linkName(old) != ByCwd.linkName(r.info):
		l.views[ByCwd] = nil
		l.views[ByDate] = nil
	}
	f.info = r.info
	l.sessions = nil
}

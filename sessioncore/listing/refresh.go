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

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
)

// sessionDir is a directory and the session files directly in it.
type sessionDir struct {
	name    string
	shownIn string       // see Listing
	stat    storage.Stat // when its names were read
	readAt  int64        // nanoseconds since the epoch
	files   []*sessionFile
	dirs    []string // only those of a top are read

	hasNoStarts atomic.Bool // of a session in it no less can be read than a list needs
}

// sessionFile is a file with the name of a session file.
type sessionFile struct {
	dir      *sessionDir
	name     string // in the storage
	readAt   int64
	info     *Info         // nil if the client does not list it
	unlisted *unlisted     // then
	token    storage.Token // its state in the last scan that looked at it
	stale    bool          // it must be read before info counts
	start    *Info         // of a stale file: its place, as readStart told it for token; or nil
}

// unlisted is a file with the name of a session that the client does not list.
type unlisted struct {
	token      storage.Token // when its prefix was read
	isStranger bool
}

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
	return x == everyFile || x == unread && (f.stale || f.info == nil)
}

// lock locks l, and refreshes it by the names in the directories unless known is set.
func (l *Listing) lock(ctx context.Context, known bool) error {
	err := storage.LockUntil(ctx, &l.mu)
	if err != nil || known {
		return err
	}
	if err = l.refresh(ctx, unread); err != nil {
		l.mu.Unlock()
	}
	return err
}

// refresh checks the names in the directories and the files of an extent, and reads those that
// changed.
func (l *Listing) refresh(ctx context.Context, x extent) error {
	stale, err := l.scan(ctx, x)
	if err != nil {
		return err
	}
	if err = l.readPrefixes(ctx, stale); err == nil {
		l.reportStrangers()
	}
	return err
}

// scan is refresh without reading the files that it returns.
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

// scanTops scans the tops. Of several, some may be unreachable.
func (l *Listing) scanTops(x extent) (tops []scannedDir, err error) {
	names, err := l.topDirs()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		top := scannedDir{dir: l.knownDir(name)}
		top.changes = top.dir.scan(l.store.Storage(), x, true)
		failed := top.changes.err
		if failed != nil && !(l.hasSeveral() && unreachable(failed)) {
			return nil, failed
		}
		tops = append(tops, top)
	}
	return tops, nil
}

// scanScopes scans the directories in the tops, several at a time. When ctx is done, those that are left
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
	err = parallel(len(scopes), runtime.GOMAXPROCS(0), func(i int) error {
		if ctx.Err() == nil {
			scopes[i].changes = scopes[i].dir.scan(l.store.Storage(), x, false)
		}
		return ctx.Err()
	})
	return scopes, err
}

// applyScan makes the scanned directories those of l, but for unreachable ones, and forgets what the
// changes make wrong. It returns the files that are to be read, and the first error of a directory.
func (l *Listing) applyScan(tops, scopes []scannedDir) (stale []*sessionFile, err error) {
	before := l.dirs
	l.dirs = map[string]*sessionDir{}
	newest := stateOfTops(tops)
	hasLost := false
	for _, scanned := range slices.Concat(tops, scopes) {
		if unreachable(scanned.changes.err) {
			continue
		}
		if err == nil {
			err = scanned.changes.err
		}
		d := scanned.dir
		l.dirs[d.name] = d
		stale = append(stale, scanned.changes.stale...)
		newest.Modified = max(newest.Modified, d.stat.Modified)
		newest.Changed = max(newest.Changed, d.stat.Changed)
		if scanned.changes.removed {
			hasLost = true
		}
	}
	for name := range before {
		if l.dirs[name] == nil {
			hasLost = true
		}
	}
	if hasLost {
		l.sessions = nil
		l.views = [views]rows{}
	}
	if l.newest != newest {
		l.newest = newest
		l.sessions = nil
	}
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

// refreshFiles is refresh for a few files, which may be removed.
func (l *Listing) refreshFiles(ctx context.Context, files []*sessionFile) error {
	stale := make([]*sessionFile, len(files))
	err := parallel(len(files), runtime.GOMAXPROCS(0), func(i int) error {
		st, err := l.store.Storage().Stat(files[i].name)
		if err != nil || st.Kind != storage.KindFile || files[i].differs(st.Token) {
			stale[i] = files[i]
		}
		if err != nil && !unreachable(err) {
			return err
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	return l.readPrefixes(ctx, slices.DeleteFunc(stale, func(f *sessionFile) bool { return f == nil }))
}

// unreachable reports whether a file does not exist or cannot be read. The client skips it, too.
func unreachable(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) ||
		errors.Is(err, storage.ErrNotRegular) || errors.Is(err, unix.ENAMETOOLONG)
}

// parallel calls work for each number below n, on a number of goroutines, and returns the first
// error, which may be a panic.
func parallel(n, workers int, work func(i int) error) error {
	var running errgroup.Group
	var next atomic.Int64
	for range min(n, workers) {
		running.Go(func() (err error) {
			defer storage.RecoverTo(&err)
			for i := next.Add(1) - 1; err == nil && i < int64(n); i = next.Add(1) - 1 {
				err = work(int(i))
			}
			return err
		})
	}
	return running.Wait()
}

// dirChanges are the changes in a directory.
type dirChanges struct {
	err     error
	removed bool           // a session was removed
	stale   []*sessionFile // to read
}

// add adds a file that is to be read.
func (c *dirChanges) add(f *sessionFile) {
	f.stale = true
	c.stale = append(c.stale, f)
}

// scan checks the names of a directory if they changed, else the files of an extent. In a top it
// finds directories, too. An error changes nothing.
func (d *sessionDir) scan(files storage.Files, x extent, top bool) (c dirChanges) {
	now := time.Now().UnixNano()
	st, err := files.Stat(d.name)
	if err == nil && st.Kind != storage.KindDir {
		err = storage.ErrNotRegular
	}
	if err != nil {
		return dirChanges{err: err}
	}
	if d.readAt == 0 || d.stat != st || st.Token.Racy(d.readAt) {
		items, err := storage.ListStat(files, d.name, func(item storage.Item) bool {
			return sessioncore.IsSession(item) || top && isScope(item)
		})
		if err != nil {
			return dirChanges{err: err}
		}
		d.stat = st
		d.readAt = now
		return d.setItems(items)
	}
	var which []*sessionFile
	var names []string
	for _, f := range d.files {
		if x.isOf(f) {
			which = append(which, f)
			names = append(names, f.base())
		}
	}
	if len(which) == 0 {
		return c
	}
	at := 0
	failed := files.List(d.name, names, func(item storage.Item) bool {
		for ; names[at] != item.Name; at++ {
			c.add(which[at]) // it is removed
		}
		var st storage.Stat
		st, c.err = item.State()
		which[at].token = st.Token
		if item.Kind != storage.KindFile || which[at].differs(st.Token) {
			c.add(which[at])
		}
		at++
		return c.err == nil
	})
	for _, f := range which[at:] {
		c.add(f)
	}
	if c.err == nil {
		c.err = failed
	}
	return c
}

func isScope(item storage.Item) bool { return item.Kind == storage.KindDir && item.Name[0] != '.' }

// setItems updates d to its current items.
func (d *sessionDir) setItems(items []storage.StatItem) (c dirChanges) {
	known := make(map[string]*sessionFile, len(d.files))
	for _, f := range d.files {
		known[f.base()] = f
	}
	d.dirs = nil
	d.files = nil
	for _, item := range items {
		if item.Kind == storage.KindDir {
			d.dirs = append(d.dirs, path.Join(d.name, item.Name))
			continue
		}
		f := known[item.Name]
		if f == nil {
			f = &sessionFile{dir: d, name: path.Join(d.name, item.Name)}
		}
		delete(known, item.Name)
		d.files = append(d.files, f)
		f.token = item.Token
		if f.differs(item.Token) {
			c.add(f)
		}
	}
	c.removed = len(known) > 0
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
	at         int64
	info       *Info
	isStranger bool
}

// readPrefixes reads the prefixes of files, several at a time. It skips unreadable files until the
// next refresh. When ctx is done, the results so far stay, and a read under way ends in the background.
func (l *Listing) readPrefixes(ctx context.Context, files []*sessionFile) error {
	results := make([]readResult, len(files))
	err := parallel((len(files)+readBatch-1)/readBatch, batchesAtOnce, func(b int) error {
		from := b * readBatch
		batch := files[from:min(len(files), from+readBatch)]
		l.readAhead(batch)
		return parallel(len(batch), readersPerCPU*runtime.GOMAXPROCS(0), func(i int) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			f := batch[i]
			before := f.info
			read := func() (readResult, error) { return l.readPrefix(f, before), nil }
			result, err := storage.Await(ctx, read, func(readResult) {})
			if err != nil {
				return err
			}
			results[from+i] = result
			return nil
		})
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

// readPrefix reads the prefix of a file, of which before was read last. It uses nothing that l.mu guards.
func (l *Listing) readPrefix(f *sessionFile, before *Info) readResult {
	at := time.Now().UnixNano()
	info, st, err := l.readInfo(f, before)
	if errors.Is(err, storage.ErrStale) { // it was replaced, or a compressed file states a wrong size
		info, st, err = l.readInfo(f, before)
	}
	if err != nil {
		return readResult{at: at}
	}
	isStranger := info == nil && st.Size > 0 && l.isStranger != nil && l.isStranger(f.name)
	return readResult{token: st.Token, at: at, info: info, isStranger: isStranger}
}

// setInfo stores the result for a file. If nothing changed, the sorted list and the keys stay.
func (l *Listing) setInfo(f *sessionFile, r readResult) {
	old := f.info
	f.readAt = r.at
	f.unlisted = nil
	f.stale = false
	f.start = nil
	if r.info == nil {
		f.unlisted = &unlisted{token: r.token, isStranger: r.isStranger}
	}
	isSame := old == nil && r.info == nil
	if old != nil && r.info != nil {
		isSame = *old == *r.info
	}
	if isSame {
		return
	}
	switch {
	case old == nil || r.info == nil || old.ID != r.info.ID || old.Parent != r.info.Parent:
		l.views = [views]rows{}
	case old.CWD != r.info.CWD || ByCwd.linkName(old) != ByCwd.linkName(r.info):
		l.views[ByCwd] = nil
		l.views[ByDate] = nil
	}
	f.info = r.info
	l.sessions = nil
}

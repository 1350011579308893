package listing

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
)

// sessionDir is a directory and the session files directly in it.
type sessionDir struct {
	name   string
	stat   storage.Stat // when its names were read
	readAt int64        // nanoseconds since the epoch
	files  []*sessionFile
	names  []string // base names of files
	dirs   []string // names of its directories; only those of the root are read
}

// sessionFile is a file with the name of a session file.
type sessionFile struct {
	name   string
	token  storage.Token // when its prefix was read
	readAt int64
	info   *Info // nil if the client does not list it
}

// refresh brings l up to date. It checks every file if all is set, and otherwise only the names in the directories and
// the unsettled files.
func (l *Listing) refresh(ctx context.Context, all bool) error {
	all = all || singleCost*len(l.unsettled) > l.checked()
	var stale []*sessionFile
	if !all {
		stale = l.changedUnsettled()
	}
	root := l.dirs[""]
	if root == nil {
		root = &sessionDir{}
	}
	changed := root.scan(l.store.Storage(), all)
	if changed.err != nil {
		return changed.err
	}
	l.apply(&changed)
	stale = append(stale, changed.stale...)
	before := l.dirs
	l.dirs, l.files = map[string]*sessionDir{"": root}, len(root.files)
	dirs, changes := make([]*sessionDir, len(root.dirs)), make([]dirChanges, len(root.dirs))
	for i, name := range root.dirs {
		if dirs[i] = before[name]; dirs[i] == nil {
			dirs[i] = &sessionDir{name: name}
		}
	}
	workers := 1
	if all {
		workers = runtime.GOMAXPROCS(0)
	}
	err := parallel(len(dirs), workers, func(i int) {
		if changes[i].err = ctx.Err(); changes[i].err == nil {
			changes[i] = dirs[i].scan(l.store.Storage(), all)
		}
	})
	newest := root.stat
	for i, d := range dirs {
		switch c := &changes[i]; {
		case c.err == nil:
			l.apply(c)
			stale = append(stale, c.stale...)
			newest.Modified = max(newest.Modified, d.stat.Modified)
			newest.Changed = max(newest.Changed, d.stat.Changed)
		case !unreachable(c.err):
			err = c.err
		default:
			continue
		}
		l.dirs[d.name] = d
		l.files += len(d.files)
	}
	for name, d := range before {
		if l.dirs[name] == nil {
			l.forget(d.files)
		}
	}
	if l.newest != newest {
		l.newest = newest
		l.sessions = nil
	}
	if err != nil {
		return err
	}
	return l.readPrefixes(ctx, stale)
}

// changedUnsettled returns the unsettled files that have to be read.
func (l *Listing) changedUnsettled() (stale []*sessionFile) {
	for f := range l.unsettled {
		if st, err := l.store.Storage().Stat(f.name); err == nil && st.Kind == storage.KindFile && f.differs(st.Token) {
			stale = append(stale, f)
		}
	}
	return stale
}

// unreachable reports whether err means that a file does not exist or may not be read. The client's list skips such
// files as well.
func unreachable(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, storage.ErrNotRegular) ||
		errors.Is(err, unix.ENAMETOOLONG)
}

// dirChanges are what a scan found in a directory.
type dirChanges struct {
	err   error
	made  []*sessionFile // with new names
	gone  []*sessionFile // with names that are gone
	stale []*sessionFile // which have to be read
}

// scan looks at a directory: if all is set at every file, otherwise at the names, if they changed. It modifies d, and
// nothing if it fails.
func (d *sessionDir) scan(files storage.Files, all bool) (c dirChanges) {
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
			return isSessionFile(item) || d.name == "" && isScope(item)
		})
		if err != nil {
			return dirChanges{err: err}
		}
		d.stat, d.readAt = st, now
		return d.setItems(items)
	}
	if all && len(d.names) > 0 {
		c.err = d.scanFiles(files, &c)
	}
	return c
}

// scanFiles looks at each file of a directory that has the same names as before.
func (d *sessionDir) scanFiles(files storage.Files, c *dirChanges) (err error) {
	at := 0
	failed := files.List(d.name, d.names, func(item storage.Item) bool {
		for ; d.names[at] != item.Name; at++ {
			c.stale = append(c.stale, d.files[at]) // it is gone
		}
		var st storage.Stat
		if st, err = item.State(); item.Kind != storage.KindFile || d.files[at].differs(st.Token) {
			c.stale = append(c.stale, d.files[at])
		}
		at++
		return err == nil
	})
	c.stale = append(c.stale, d.files[at:]...)
	return cmp.Or(err, failed)
}

// isSessionFile reports whether the client's list takes an item for a session file: it skips hidden names and links.
func isSessionFile(item storage.Item) bool {
	return item.Kind == storage.KindFile && item.Name[0] != '.' && strings.HasSuffix(item.Name, sessioncore.FileEnding)
}

func isScope(item storage.Item) bool { return item.Kind == storage.KindDir && item.Name[0] != '.' }

// setItems updates d to the items that are in the directory now.
func (d *sessionDir) setItems(items []storage.StatItem) (c dirChanges) {
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
				c.made = append(c.made, f)
			}
			delete(known, item.Name)
			d.files = append(d.files, f)
			d.names = append(d.names, path.Base(f.name)) // which shares its memory
			if f.differs(item.Token) {
				c.stale = append(c.stale, f)
			}
		}
	}
	for _, f := range known {
		c.gone = append(c.gone, f)
	}
	return c
}

// differs reports whether a file that now has this token has to be read.
func (f *sessionFile) differs(t storage.Token) bool { return f.token != t || t.Racy(f.readAt) }

// apply notes what a scan found, but for the files that have to be read.
func (l *Listing) apply(c *dirChanges) {
	for _, f := range c.made {
		l.unsettled[f] = true
	}
	l.forget(c.gone)
}

// forget removes files whose names are gone.
func (l *Listing) forget(files []*sessionFile) {
	for _, f := range files {
		delete(l.unsettled, f)
		if f.info != nil {
			f.info = nil
			l.sessions, l.lookup = nil, lookup{}
		}
	}
}

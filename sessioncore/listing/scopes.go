package listing

import (
	"context"
	"sync"
	"time"

	"sessionfs/sessioncore/storage"
)

// scopes looks at the directories in the root of the storage, and at no session: whoever lists the root of the mount asks
// here, however many sessions there are, and waits for nobody who looks at them.
type scopes struct {
	mu sync.Mutex // guards counts, and is held while files are counted
	// counts has how many session files the directories have that Exceeds has counted.
	counts map[string]count
}

// count is how many session files a directory had.
type count struct {
	stat   storage.Stat
	readAt int64 // nanoseconds since the epoch
	files  int
}

// eachScope returns the state of the root, and calls f with each directory in it.
func (l *Listing) eachScope(f func(name string, dir storage.Stat)) (root storage.Stat, err error) {
	if root, err = l.store.Storage().Stat(""); err != nil {
		return root, err
	}
	if root.Kind != storage.KindDir {
		return root, storage.ErrNotRegular
	}
	dirs, err := storage.ListStat(l.store.Storage(), "", isScope)
	for _, d := range dirs {
		f(d.Name, d.Stat)
	}
	return root, err
}

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

// Exceeds reports whether there are more than most session files. It looks at names alone, at no more of them than it
// takes to know, and not again at those in a directory that did not change.
func (l *Listing) Exceeds(ctx context.Context, most int) (bool, error) {
	if err := storage.LockUntil(ctx, &l.scopes.mu); err != nil {
		return false, err
	}
	defer l.scopes.mu.Unlock()
	dirs := map[string]storage.Stat{}
	root, err := l.eachScope(func(name string, dir storage.Stat) { dirs[name] = dir })
	if err != nil {
		return false, err
	}
	dirs[""] = root
	known := l.scopes.counts
	l.scopes.counts = make(map[string]count, len(dirs))
	for name, st := range dirs {
		if c, ok := known[name]; ok && c.stat == st && !st.Racy(c.readAt) {
			l.scopes.counts[name] = c
			most -= c.files
			delete(dirs, name)
		}
	}
	for name, st := range dirs {
		if most < 0 {
			break
		}
		if err := ctx.Err(); err != nil {
			return false, err
		}
		c := count{stat: st, readAt: time.Now().UnixNano()}
		err := l.store.Storage().List(name, nil, func(item storage.Item) bool {
			if isSessionFile(item) {
				c.files++
			}
			return c.files <= most
		})
		if err != nil && !unreachable(err) {
			return false, err
		}
		if most -= c.files; most >= 0 {
			l.scopes.counts[name] = c // else it may have more
		}
	}
	return most < 0, nil
}

package listing

import (
	"context"
	"time"

	"sessionfs/sessioncore/storage"
)

// count is how many session files a directory had.
type count struct {
	stat   storage.Stat
	readAt int64 // nanoseconds since the epoch
	files  int
}

// Exceeds reports whether there are more than most session files. It looks at names alone, at no more of them than it
// takes to know, and not again at those in a directory that did not change. Like Stat it waits for nobody who looks at
// sessions.
func (l *Listing) Exceeds(ctx context.Context, most int) (bool, error) {
	l.scopes.mu.Lock()
	defer l.scopes.mu.Unlock()
	files := l.store.Storage()
	dirs := map[string]storage.Stat{}
	root, err := l.scopes.look(files, func(name string, dir storage.Stat) { dirs[name] = dir })
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
		err := files.Each(name, func(item storage.Item) bool {
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

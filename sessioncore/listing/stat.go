package listing

import (
	"context"
	"sync"
	"time"

	"sessionfs/sessioncore/storage"
)

// scopes are the directories in the root of the storage, as they were when they were listed.
type scopes struct {
	mu     sync.Mutex // guards the fields below; held while they are looked at
	stat   storage.Stat
	readAt int64 // nanoseconds since the epoch
	names  []string
}

// Stat returns the Stat of the sessions' directory, with the latest times of the directories in it: when a session was
// last added or removed. It looks at no session and waits for nobody who does: whoever lists the root of the mount asks
// for this, however many sessions there are.
func (l *Listing) Stat(ctx context.Context) (storage.Stat, error) {
	l.scopes.mu.Lock()
	defer l.scopes.mu.Unlock()
	files, now := l.store.Storage(), time.Now().UnixNano()
	st, err := files.Stat("")
	if err != nil {
		return st, err
	}
	if st.Kind != storage.KindDir {
		return st, storage.ErrNotRegular
	}
	newest := st
	add := func(_ int, dir storage.Stat) {
		if dir.Kind == storage.KindDir {
			newest.Modified = max(newest.Modified, dir.Modified)
			newest.Changed = max(newest.Changed, dir.Changed)
		}
	}
	if s := &l.scopes; s.readAt != 0 && s.stat == st && !st.Racy(s.readAt) {
		err = storage.StatNames(files, "", s.names, add)
		return newest, err
	}
	found, err := storage.ListStat(files, "", isScope)
	if err != nil {
		return st, err
	}
	l.scopes.stat, l.scopes.readAt, l.scopes.names = st, now, nil
	for i, item := range found {
		l.scopes.names = append(l.scopes.names, item.Name)
		add(i, item.Stat)
	}
	return newest, ctx.Err()
}

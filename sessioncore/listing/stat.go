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
	// counts has how many session files the directories have that Exceeds has counted.
	counts map[string]count
}

// Stat returns the Stat of the sessions' directory, with the latest times of the directories in it: when a session was
// last added or removed. It looks at no session and waits for nobody who does: whoever lists the root of the mount asks
// for this, however many sessions there are.
func (l *Listing) Stat(ctx context.Context) (storage.Stat, error) {
	l.scopes.mu.Lock()
	defer l.scopes.mu.Unlock()
	var newest storage.Stat
	root, err := l.scopes.look(l.store.Storage(), func(_ string, dir storage.Stat) {
		newest.Modified = max(newest.Modified, dir.Modified)
		newest.Changed = max(newest.Changed, dir.Changed)
	})
	if err != nil {
		return root, err
	}
	root.Modified, root.Changed = max(root.Modified, newest.Modified), max(root.Changed, newest.Changed)
	return root, ctx.Err()
}

// look returns the state of the root, and calls f with each directory in it. Callers must hold s.mu.
func (s *scopes) look(files storage.Storage, f func(name string, dir storage.Stat)) (root storage.Stat, err error) {
	now := time.Now().UnixNano()
	if root, err = files.Stat(""); err != nil {
		return root, err
	}
	if root.Kind != storage.KindDir {
		return root, storage.ErrNotRegular
	}
	if s.readAt != 0 && s.stat == root && !root.Racy(s.readAt) {
		err = storage.StatNames(files, "", s.names, func(i int, dir storage.Stat) {
			if dir.Kind == storage.KindDir {
				f(s.names[i], dir)
			}
		})
		return root, err
	}
	found, err := storage.ListStat(files, "", isScope)
	if err != nil {
		return root, err
	}
	s.stat, s.readAt, s.names = root, now, nil
	for _, item := range found {
		s.names = append(s.names, item.Name)
		f(item.Name, item.Stat)
	}
	return root, nil
}

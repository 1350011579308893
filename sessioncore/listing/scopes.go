package listing

import (
	"context"

	"sessionfs/sessioncore/storage"
)

// What is here looks at the directories in the root of the storage, and at no session: whoever lists the root of the mount
// asks here, however many sessions there are, and waits for nobody who looks at them.

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

// Exceeds reports whether there are more than most session files. It looks at names alone, and at no more of them than it
// takes to know.
func (l *Listing) Exceeds(ctx context.Context, most int) (bool, error) {
	dirs := []string{""}
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

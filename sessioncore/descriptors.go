package sessioncore

import (
	"errors"
	"syscall"

	"sessionfs/sessioncore/storage"
)

// Snapshots that are kept hold an open file each. They must not use up the descriptors of the process.

// keptShare is which part of the process's descriptors kept snapshots may hold: one in so many. Readers and directories
// need the others.
const keptShare = 4

// keepable returns how many sessions may keep a snapshot.
func keepable() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return maxKept
	}
	return int(max(1, min(maxKept, uint64(limit.Cur)/keptShare)))
}

// givingBack is a storage that gives kept snapshots back when there are no descriptors left to open a file.
type givingBack struct {
	storage.Storage
	store *Store
}

// Open implements storage.Storage.
func (g givingBack) Open(name string) (storage.Object, error) {
	obj, err := g.Storage.Open(name)
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		g.store.Close()
		obj, err = g.Storage.Open(name)
	}
	return obj, err
}

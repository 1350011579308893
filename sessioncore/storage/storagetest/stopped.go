package storagetest

import (
	"hash/fnv"
	"path"
	"time"

	"sessionfs/sessioncore/storage"
)

// Stopped is a storage whose clock of file times stands still, as it does for a tick: a change that keeps the size of a
// file or the number of names in a directory keeps its token.
type Stopped struct {
	storage.Storage
	// At is the time of all changes.
	At time.Time
}

// Ticking returns a time for a Stopped storage: within the tick of its clock, when a token proves nothing, or
// long ago, when an unchanged token means an unchanged file.
func Ticking(racy bool) time.Time {
	if racy {
		return time.Now().Add(time.Hour).Truncate(time.Second).Add(time.Millisecond)
	}
	return time.Now().Add(-time.Hour)
}

// stat returns a state with the time of all changes, and an inode number that depends on the name alone. After an error it returns
// its arguments.
func (s *Stopped) stat(name string, st storage.Stat, err error) (storage.Stat, error) {
	if err != nil {
		return st, err
	}
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(name))
	st.Inode = sum.Sum64()
	st.Changed = s.At.UnixNano()
	st.Modified = s.At.UnixNano()
	return st, nil
}

func (s *Stopped) Stat(name string) (storage.Stat, error) {
	st, err := s.Storage.Stat(name)
	return s.stat(name, st, err)
}

// List implements storage.Files.
func (s *Stopped) List(dir string, only []string, f func(storage.Item) bool) error {
	return s.Storage.List(dir, only, func(item storage.Item) bool {
		state := item.State
		item.State = func() (storage.Stat, error) {
			st, err := state()
			return s.stat(path.Join(dir, item.Name), st, err)
		}
		return f(item)
	})
}

// Open implements storage.Files.
func (s *Stopped) Open(name string) (storage.Object, error) {
	obj, err := s.Storage.Open(name)
	if err != nil {
		return nil, err
	}
	return &stoppedObject{Object: obj, storage: s, name: name}, nil
}

// stoppedObject is an open file of a Stopped storage.
type stoppedObject struct {
	storage.Object
	storage *Stopped
	name    string
}

func (o *stoppedObject) Stat() (storage.Stat, error) {
	st, err := o.Object.Stat()
	return o.storage.stat(o.name, st, err)
}

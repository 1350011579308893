package writer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// errUnruly is what calls of an unrulyStorage fail with.
var errUnruly = errors.New("injected")

// unrulyStorage is a storage whose calls fail, are cut short, are held up, and overtake each other, by a seed.
type unrulyStorage struct {
	storage.Storage
	calm atomic.Bool // no faults any more

	mu     sync.Mutex // guards those below
	rnd    *rand.Rand
	faults map[string]int // that were injected, by call
	torn   map[string]int // appends that left a part, by file
	open   atomic.Int64   // objects
}

func newUnruly(files storage.Storage, seed uint64) *unrulyStorage {
	return &unrulyStorage{Storage: files, rnd: rand.New(rand.NewPCG(seed, 0)), faults: map[string]int{}, torn: map[string]int{}}
}

// unruly lets others overtake the call, and returns an error for one of so many.
func (u *unrulyStorage) unruly(call string, oneOf int) error {
	if u.calm.Load() {
		return nil
	}
	u.mu.Lock()
	turns, fails := u.rnd.IntN(20), u.rnd.IntN(oneOf) == 0
	if fails {
		u.faults[call]++
	}
	u.mu.Unlock()
	for range turns {
		runtime.Gosched()
	}
	if !fails {
		return nil
	}
	return errors.Join(errUnruly, unix.EIO)
}

func (u *unrulyStorage) List(dir string, only []string, f func(storage.Item) bool) error {
	if err := u.unruly("List", 30); err != nil {
		return err
	}
	return u.Storage.List(dir, only, f)
}

func (u *unrulyStorage) Stat(name string) (storage.Stat, error) {
	if err := u.unruly("Stat", 60); err != nil {
		return storage.Stat{}, err
	}
	return u.Storage.Stat(name)
}

// Append may also leave a part behind that could not be taken back.
func (u *unrulyStorage) Append(name string, data []byte) (storage.Stat, error) {
	if err := u.unruly("Append", 20); err != nil {
		return storage.Stat{}, err
	}
	if err := u.unruly("Append, a part", 20); err != nil {
		u.mu.Lock()
		part := u.rnd.IntN(bytes.Index(data, []byte("}\n")) + 1) // of the first entry
		u.torn[name]++
		u.mu.Unlock()
		if _, broken := u.Storage.Append(name, data[:part]); broken != nil {
			return storage.Stat{}, errors.Join(err, broken)
		}
		return storage.Stat{}, err
	}
	return u.Storage.Append(name, data)
}

// Replace fails before the call, or in the middle of the content, or says after it that the name may not be durable.
func (u *unrulyStorage) Replace(name string, r storage.Replacement) (storage.Stat, error) {
	if r.Write == nil {
		if err := u.unruly("Overwrite", 3); err != nil {
			return storage.Stat{}, err
		}
		return u.Storage.Replace(name, r)
	}
	if err := u.unruly("Replace", 6); err != nil {
		return storage.Stat{}, err
	}
	write := r.Write
	r.Write = func(out io.Writer) error { return write(&unrulyWriter{u, out}) }
	st, err := u.Storage.Replace(name, r)
	if err == nil {
		err = u.unruly("Replace, its directory", 6)
	}
	return st, err
}

type unrulyWriter struct {
	u   *unrulyStorage
	out io.Writer
}

func (w *unrulyWriter) Write(p []byte) (int, error) {
	if err := w.u.unruly("Replace, a part", 30); err != nil {
		n, _ := w.out.Write(p[:len(p)/2])
		return n, err
	}
	return w.out.Write(p)
}

func (u *unrulyStorage) Sync(name string) error {
	if err := u.unruly("Sync", 5); err != nil {
		return err
	}
	return u.Storage.Sync(name)
}

// Lock may fail, and may say of a lock that was given back that another had broken it.
func (u *unrulyStorage) Lock(ctx context.Context, name string) (func() error, error) {
	if err := u.unruly("Lock", 40); err != nil {
		return nil, err
	}
	unlock, err := u.Storage.Lock(ctx, name)
	if err != nil {
		return nil, err
	}
	return func() error { return errors.Join(unlock(), u.unruly("unlock", 20)) }, nil
}

func (u *unrulyStorage) Open(name string) (storage.Object, error) {
	if err := u.unruly("Open", 40); err != nil {
		return nil, err
	}
	o, err := u.Storage.Open(name)
	if err != nil {
		return nil, err
	}
	u.open.Add(1)
	return &unrulyObject{Object: o, u: u}, nil
}

// unrulyObject is an open file.
type unrulyObject struct {
	storage.Object
	u *unrulyStorage
}

// ReadAt may fail, also after a part.
func (o *unrulyObject) ReadAt(p []byte, off int64) (int, error) {
	if err := o.u.unruly("ReadAt", 200); err != nil {
		n, _ := o.Object.ReadAt(p[:len(p)/2], off)
		return n, err
	}
	return o.Object.ReadAt(p, off)
}

func (o *unrulyObject) Stat() (storage.Stat, error) {
	if err := o.u.unruly("Object.Stat", 60); err != nil {
		return storage.Stat{}, err
	}
	return o.Object.Stat()
}

func (o *unrulyObject) Close() error {
	o.u.open.Add(-1)
	return o.Object.Close()
}

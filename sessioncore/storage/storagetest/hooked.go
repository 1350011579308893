package storagetest

import (
	"context"
	"errors"

	"sessionfs/sessioncore/storage"
)

// Call is a call of a Hooked storage.
type Call struct {
	// Op is the method: List, Stat, Open, Append, Replace, Overwrite (a Replace of the beginning), Sync,
	// Lock, unlock, or of an open file ReadAt, Object.Stat, Close.
	Op, Name string
	Off      int64 // of a ReadAt
	Size     int   // of a ReadAt: the bytes that are asked for, and After it those that were read
}

// Hooked is a storage whose calls tests watch, hold up and let fail.
type Hooked struct {
	storage.Storage
	// Before is called before each call, and its error is the call's. Nil does nothing.
	Before func(Call) error
	// After is called after each call with its error, and returns the one that the caller gets.
	After func(Call, error) error
}

// call calls do between the hooks. do may change the call that After gets. Without a call, after an error of Before, there is no
// After.
func (h *Hooked) call(c Call, do func(*Call) error) error {
	if h.Before != nil {
		err := h.Before(c)
		if err != nil {
			return err
		}
	}
	err := do(&c)
	if h.After != nil {
		err = h.After(c, err)
	}
	return err
}

// stat is call for a method that returns a Stat.
func (h *Hooked) stat(op, name string, do func() (storage.Stat, error)) (st storage.Stat, err error) {
	err = h.call(Call{Op: op, Name: name}, func(*Call) error {
		st, err = do()
		return err
	})
	return st, err
}

func (h *Hooked) List(dir string, only []string, f func(storage.Item) bool) error {
	return h.call(Call{Op: "List", Name: dir}, func(*Call) error {
		return h.Storage.List(dir, only, f)
	})
}

func (h *Hooked) Stat(name string) (storage.Stat, error) {
	return h.stat("Stat", name, func() (storage.Stat, error) {
		return h.Storage.Stat(name)
	})
}

func (h *Hooked) Append(name string, data []byte) (storage.Stat, error) {
	return h.stat("Append", name, func() (storage.Stat, error) {
		return h.Storage.Append(name, data)
	})
}

// Replace implements storage.Journal. The hooks see one of a beginning as Overwrite.
func (h *Hooked) Replace(name string, r storage.Replacement) (storage.Stat, error) {
	op := "Replace"
	if r.Write == nil {
		op = "Overwrite"
	}
	return h.stat(op, name, func() (storage.Stat, error) {
		return h.Storage.Replace(name, r)
	})
}

func (h *Hooked) Sync(name string) error {
	return h.call(Call{Op: "Sync", Name: name}, func(*Call) error {
		return h.Storage.Sync(name)
	})
}

// Lock implements storage.Journal. The hooks see the unlock too.
func (h *Hooked) Lock(ctx context.Context, name string) (func() error, error) {
	var unlock func() error
	err := h.call(Call{Op: "Lock", Name: name}, func(*Call) (err error) {
		unlock, err = h.Storage.Lock(ctx, name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return func() error {
		return h.call(Call{Op: "unlock", Name: name}, func(*Call) error {
			return unlock()
		})
	}, nil
}

// Open implements storage.Files. The hooks see the calls of the open file too.
func (h *Hooked) Open(name string) (storage.Object, error) {
	var obj storage.Object
	err := h.call(Call{Op: "Open", Name: name}, func(*Call) (err error) {
		obj, err = h.Storage.Open(name)
		return err
	})
	if err != nil {
		if obj != nil {
			err = errors.Join(err, obj.Close())
		}
		return nil, err
	}
	return &hookedObject{Object: obj, storage: h, name: name}, nil
}

// hookedObject is an open file of a Hooked storage.
type hookedObject struct {
	storage.Object
	storage *Hooked
	name    string
}

// ReadAt implements storage.Object. After sees the number of bytes that were read.
func (o *hookedObject) ReadAt(p []byte, off int64) (n int, err error) {
	call := Call{
		Op:   "ReadAt",
		Name: o.name,
		Off:  off,
		Size: len(p),
	}
	err = o.storage.call(call, func(c *Call) error {
		n, err = o.Object.ReadAt(p, off)
		c.Size = n
		return err
	})
	return n, err
}

func (o *hookedObject) Stat() (storage.Stat, error) {
	return o.storage.stat("Object.Stat", o.name, o.Object.Stat)
}

func (o *hookedObject) Close() error {
	return o.storage.call(Call{Op: "Close", Name: o.name}, func(*Call) error {
		return o.Object.Close()
	})
}

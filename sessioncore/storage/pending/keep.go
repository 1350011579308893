package pending

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// This file puts pending files on disk (docs/design.md section 2, new-session).

// KeepAll implements Storage.
func (p *Storage) KeepAll(ctx context.Context) (failed []storage.Unkept) {
	for _, name := range p.Names() {
		kept, err := p.keepUsed(ctx, name)
		if kept && err == nil {
			err = p.Storage.Sync(name)
		}
		if err != nil {
			failed = append(failed, storage.Unkept{Name: name, Err: err})
		}
	}
	return failed
}

// keepUsed puts a file on disk if it is in memory and used. kept reports whether it is such a file.
func (p *Storage) keepUsed(ctx context.Context, name string) (kept bool, err error) {
	unlock, err := p.Lock(ctx, name)
	if err != nil {
		return false, err
	}
	defer func() { _ = unlock() }()
	if !p.used(name) {
		return false, nil
	}
	return true, p.Keep(ctx, name, nil)
}

// End calls KeepAll for the last time: from now on, an append to a file in memory puts it on disk.
func (p *Storage) End(ctx context.Context) (failed []storage.Unkept) {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	// A writer that appended before this holds the lock of its file. KeepAll takes that lock before it checks
	// whether the file was used.
	return p.KeepAll(ctx)
}

// Size returns the total size of the files in memory, in bytes.
func (p *Storage) Size() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bytes
}

// Names returns the names of the files in memory, sorted.
func (p *Storage) Names() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.files))
}

// used reports whether a file is in memory and was created as used or appended to.
func (p *Storage) used(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.files[name]
	return f != nil && f.used
}

// reserve makes room for n more bytes in memory. If there is none, the data has to go to disk: the error is ErrNoRoom.
// What is reserved is counted at once, so that writers of several files cannot take the same room.
func (p *Storage) reserve(n int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	size := p.bytes + int64(n)
	if p.ended || size > MaxPendingBytes || p.hold.Resize(size) != nil {
		return storage.ErrNoRoom
	}
	p.bytes = size
	return nil
}

// giveBack undoes reserve.
func (p *Storage) giveBack(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resize(-int64(n))
}

// resize counts a change of the files' sizes. Callers must hold p.mu.
func (p *Storage) resize(more int64) {
	p.bytes += more
	p.hold.Set(p.bytes)
}

// grown records the new state of a file in memory, unless err is set. reserved are the bytes that were reserved for it.
func (p *Storage) grown(name string, st storage.Stat, err error, reserved int, used bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resize(-int64(reserved))
	f := p.files[name]
	if err != nil || f == nil {
		return
	}
	p.resize(st.Size - f.size)
	f.size = st.Size
	f.used = f.used || used
}

// count adds n to the number of files below each directory of a file. Callers must hold p.mu.
func (p *Storage) count(name string, n int) {
	for dir := storage.Dir(name); ; dir = storage.Dir(dir) {
		if p.below[dir] += n; p.below[dir] == 0 {
			delete(p.below, dir)
		}
		if dir == "" {
			return
		}
	}
}

// Keep implements Storage.
func (p *Storage) Keep(ctx context.Context, name string, more []byte) error {
	obj, err := p.memory.Open(name)
	if err != nil {
		return err
	}
	defer obj.Close()
	st, err := obj.Stat()
	if err != nil {
		return err
	}
	if err := p.makeDir(storage.Dir(name)); err != nil {
		return err
	}
	unlock, err := p.Storage.Lock(ctx, name)
	if err != nil {
		return err
	}
	defer func() { _ = unlock() }()
	err = storage.Replaced(p.Storage.Replace(name, storage.Token{}, func(out io.Writer) error {
		if _, err := io.Copy(out, io.NewSectionReader(obj, 0, st.Size)); err != nil {
			return err
		}
		_, err := out.Write(more)
		return err
	}))
	if err != nil {
		return err
	}
	p.forget(name)
	return nil
}

// makeDir creates a directory on disk, if the storage has directories. If something is in the way, the error is
// ENOTDIR: ErrNotRegular or fs.ErrNotExist would mean that the file in memory is gone.
func (p *Storage) makeDir(dir string) error {
	err := p.Storage.MkdirAll(dir)
	switch {
	case errors.Is(err, storage.ErrUnsupported):
		return nil
	case errors.Is(err, storage.ErrNotRegular), storage.IsMissing(err):
		return fmt.Errorf("%w: %v", unix.ENOTDIR, err)
	}
	return err
}

// forget removes a file from memory, and directories that are empty after that.
func (p *Storage) forget(name string) {
	p.mu.Lock()
	if f := p.files[name]; f != nil {
		p.resize(-f.size)
		p.count(name, -1)
		delete(p.files, name)
	}
	p.mu.Unlock()
	_ = p.memory.Remove(name)
	for dir := storage.Dir(name); dir != "" && !p.any(dir); dir = storage.Dir(dir) {
		_ = p.memory.Remove(dir)
	}
}

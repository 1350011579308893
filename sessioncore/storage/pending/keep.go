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

// Putting on disk what waits in memory (docs/design.md section 2, new-session).

// Unkept is a file that could not be put on disk, and why.
type Unkept struct {
	Name string
	Err  error
}

// KeepAll puts every file that somebody added to on disk, in the order of names, and returns those for which that
// failed: they are in memory as before.
func (p *Storage) KeepAll(ctx context.Context) (failed []Unkept) {
	for _, name := range p.Names() {
		kept, err := p.KeepNow(ctx, name, p.used)
		if kept && err == nil {
			err = p.Storage.Sync(name)
		}
		if err != nil {
			failed = append(failed, Unkept{name, err})
		}
	}
	return failed
}

// End is KeepAll for the last time: whoever adds to a file in memory from now on puts it on disk with that.
func (p *Storage) End(ctx context.Context) (failed []Unkept) {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	// A writer that asked MustKeep before this holds the lock of its file, which KeepAll takes before it looks
	// whether something was added.
	return p.KeepAll(ctx)
}

// Size returns how many bytes the files in memory have together.
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

// used reports whether there is a file of that name in memory that somebody added to.
func (p *Storage) used(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.files[name]
	return f != nil && f.used
}

// MustKeep reports whether a file to which n bytes are to be added has to go to disk with them. The caller holds
// its lock.
func (p *Storage) MustKeep(n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended || p.bytes+int64(n) > MaxPendingBytes
}

// grown notes the new state of a file in memory.
func (p *Storage) grown(name string, st storage.Stat, err error, used bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.files[name]
	if err != nil || f == nil {
		return
	}
	p.bytes += st.Size - f.size
	f.size = st.Size
	f.used = f.used || used
}

// Keep puts a file that is in memory on disk, with more at its end. The caller holds Lock(name).
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

// makeDir makes a directory on disk, if the storage has directories. What stands in its way came there after the file
// in memory: the file is not gone, as ErrNotRegular would say.
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

// KeepNow is Keep for callers that do not hold the lock; it keeps the file if want, asked under the lock, says so.
func (p *Storage) KeepNow(ctx context.Context, name string, want func(string) bool) (kept bool, err error) {
	unlock, err := p.Lock(ctx, name)
	if err != nil {
		return false, err
	}
	defer func() { _ = unlock() }()
	if !want(name) {
		return false, nil // for Pending: somebody was faster
	}
	return true, p.Keep(ctx, name, nil)
}

// forget removes a file from memory, with directories that held nothing else.
func (p *Storage) forget(name string) {
	p.mu.Lock()
	if f := p.files[name]; f != nil {
		p.bytes -= f.size
		delete(p.files, name)
	}
	p.mu.Unlock()
	_ = p.memory.Remove(name)
	for dir := storage.Dir(name); dir != "" && !p.any(dir); dir = storage.Dir(dir) {
		_ = p.memory.Remove(dir)
	}
}

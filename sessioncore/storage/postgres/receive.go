package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// incoming is a file that grows as its content comes, until Publish makes a row of it: a temporary file whose name was removed
// before anything was written, so that it is gone with its process.
type incoming struct {
	storage.UnsupportedObject

	s        *Storage
	f        *os.File
	number   uint64       // in place of an inode
	modified atomic.Int64 // nanoseconds since the epoch
}

var _ storage.Incoming = (*incoming)(nil)

// Receive implements storage.Storage. Rows take no room before they are whole: the content does in Options.Temporary.
func (s *Storage) Receive(dir string) (storage.Incoming, error) {
	if err := s.inDir(dir, func(*node) {}); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(s.opts.Temporary, "sessionfs-copy-")
	if err != nil {
		return nil, noSpool(err)
	}
	if err := os.Remove(f.Name()); err != nil {
		_ = f.Close()
		return nil, err
	}
	in := &incoming{s: s, f: f}
	s.mu.Lock()
	s.inodes++
	in.number = s.inodes
	s.mu.Unlock()
	in.modified.Store(time.Now().UnixNano())
	return in, nil
}

// noSpool is the error for a temporary file that cannot be made or written. Its name would tell nobody anything.
func noSpool(err error) error {
	var of *fs.PathError
	if errors.As(err, &of) {
		err = of.Err
	}
	return fmt.Errorf("a copy waits in a temporary file until it is whole, for which TMPDIR can name another directory: %w", err)
}

// WriteAt implements storage.Incoming. It takes no more than a row can have.
func (in *incoming) WriteAt(p []byte, off int64) (int, error) {
	if err := checkSize(off + int64(len(p))); err != nil {
		return 0, err
	}
	n, err := in.f.WriteAt(p, off)
	in.modified.Store(time.Now().UnixNano())
	if err != nil {
		return n, noSpool(err)
	}
	return n, nil
}

// Truncate implements storage.Incoming.
func (in *incoming) Truncate(size int64) error {
	if err := checkSize(size); err != nil {
		return err
	}
	in.modified.Store(time.Now().UnixNano())
	return in.f.Truncate(size)
}

// ReadAt implements storage.Object.
func (in *incoming) ReadAt(p []byte, off int64) (int, error) { return in.f.ReadAt(p, off) }

// Close implements storage.Object.
func (in *incoming) Close() error { return in.f.Close() }

// Stat implements storage.Object.
func (in *incoming) Stat() (storage.Stat, error) {
	info, err := in.f.Stat()
	if err != nil {
		return storage.Stat{}, err
	}
	st, at := in.s.ours, in.modified.Load()
	st.Kind, st.Mode = storage.KindFile, storage.FileMode
	st.Token = storage.Token{Device: in.s.device, Inode: in.number, Size: info.Size(), Modified: at, Changed: at}
	return st, nil
}

// SetAttributes implements storage.Incoming. A row has no mode and no owner, so these are ignored.
func (in *incoming) SetAttributes(a storage.Attributes) error {
	if a.Modified != nil {
		in.modified.Store(*a.Modified)
	}
	return nil
}

// Publish implements storage.Incoming.
func (in *incoming) Publish(name string) (storage.Stat, error) {
	s := in.s
	if err := storage.CheckName(name); err != nil {
		return storage.Stat{}, err
	}
	if err := s.refresh(); err != nil {
		return storage.Stat{}, err
	}
	if _, err := s.expected(name, storage.Token{}); err != nil {
		return storage.Stat{}, err
	}
	c, err := in.change(s.pathOf(name))
	if err != nil {
		return storage.Stat{}, err
	}
	after, asked, err := s.write(name, c)
	if errors.Is(err, storage.ErrStale) {
		err = fmt.Errorf("%w: %w", err, fs.ErrExist)
	}
	if err != nil {
		return storage.Stat{}, err
	}
	return s.writtenAnew(name, after, asked), nil
}

// change returns the change that makes the row of a path.
func (in *incoming) change(path string) (change, error) {
	info, err := in.f.Stat()
	if err != nil {
		return change{}, err
	}
	mtime, size := toMillis(in.modified.Load()), info.Size()
	if size > insertAtOnce {
		return in.stream(path, mtime, size)
	}
	text := make([]byte, size)
	if err := storage.ReadFull(in.f, text, 0); err != nil {
		return change{}, err
	}
	if err := checkText(text, 0); err != nil {
		return change{}, err
	}
	c := change{path: path, sql: in.s.sql.insert, args: []any{mtime, string(text)}, data: text}
	if in.s.sql.titles {
		t := titleOf(text)
		c.args = append(c.args, t.text, t.source, t.updated)
	}
	return c, nil
}

// titleOf returns the columns for a content that is to be read as it is: that of its slot, or none where a slot made of them
// would differ from it.
func titleOf(content []byte) title {
	t, ok := parseSlot(content)
	if !ok || string(t.line()) != string(content[:slotSize]) {
		return title{}
	}
	return t
}

// toMillis returns what mtime_ms is of a time.
func toMillis(ns int64) int64 { return time.Unix(0, ns).UnixMilli() }

// SetAttributes implements storage.Storage. Of a row only the time of its last change is kept, and of a directory that in this
// process alone. Everything else is ignored.
func (s *Storage) SetAttributes(name string, a storage.Attributes) error {
	if err := storage.CheckName(name); err != nil {
		return err
	}
	if err := s.refresh(); err != nil {
		return err
	}
	s.mu.Lock()
	n, err := s.lookUp("setattr", name)
	if err != nil || a.Modified == nil {
		s.mu.Unlock()
		return err
	}
	ms := toMillis(*a.Modified)
	differs := n.row != nil && n.row.mtime != ms
	if n.row == nil {
		n.modified = *a.Modified
		n.changed = nextChange(n.changed, n.modified)
	}
	s.mu.Unlock()
	if differs {
		return s.setTime(name, ms)
	}
	return nil
}

func (s *Storage) setTime(name string, ms int64) error {
	unlock, err := s.Lock(context.Background(), name)
	if err != nil {
		return err
	}
	defer func() { _ = unlock() }()
	r, err := s.fileNow("setattr", name)
	if err != nil {
		return err
	}
	before, _ := r.content.facts()
	after, asked, err := s.write(name, change{
		path: before.path, version: s.versionOf(name, before.version), sql: s.sql.setTime, args: []any{ms},
		also: func(f facts) bool { return f.mtime == ms },
	})
	if err != nil {
		return err
	}
	r.content.overwrote(before, nil, after, true)
	s.written(r, after, asked)
	return nil
}

// Mkdir implements storage.Storage. A directory without a row exists for this process alone.
func (s *Storage) Mkdir(dir string, _ uint32) error {
	if err := storage.CheckName(dir); err != nil {
		return err
	}
	if err := checkText([]byte(dir), 0); err != nil {
		return err
	}
	if err := s.refresh(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.checkParent("mkdir", dir); err != nil {
		return err
	}
	if s.find(dir) != nil {
		return &fs.PathError{Op: "mkdir", Path: dir, Err: fs.ErrExist}
	}
	s.enter(dir).made = true
	return nil
}

// RemoveIf implements storage.Storage for directories that have nothing in them. A row is never removed.
func (s *Storage) RemoveIf(name string, expect storage.Token) error {
	if err := s.refresh(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.lookUp("remove", name)
	switch {
	case err != nil || n.row != nil || n == s.root:
		return fmt.Errorf("%w: rows are not removed", storage.ErrUnsupported)
	case !s.statOf(n).SameObject(expect):
		return fmt.Errorf("%w: %s", storage.ErrStale, name)
	case len(n.children) > 0:
		return fmt.Errorf("remove %s: %w", name, unix.ENOTEMPTY)
	}
	n.made = false
	s.prune(n)
	return nil
}

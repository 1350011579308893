package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// Kept counts the copies that Keep made in the directory of an agent.
type Kept struct {
	Copied, Unchanged int // files
	Beside            int // of Copied those that are kept beside an earlier copy
	Bytes             int64
	// Soon is how many session files have not been changed for so long that they are deleted within
	// a week.
	Soon int
}

// FromName is the file in a directory of kept sessions that has the path of the agent's directory.
const FromName = ".from"

// KeptIn returns the directory below dir for the sessions of an agent's directory from. Each
// directory of an agent, as its settings may name several, has one of its own.
func KeptIn(dir, agent, from string) string {
	at := filepath.Join(dir, agent)
	for n := 1; ; n++ {
		of, err := os.ReadFile(filepath.Join(at, FromName))
		if err != nil || strings.TrimSuffix(string(of), "\n") == from {
			return at
		}
		at = filepath.Join(dir, fmt.Sprintf("%s.%d", agent, n))
	}
}

// Keep copies the files in the directories dirs of an agent's directory to another one: those that
// are new, and those that are longer than their copy. Nothing is removed. A session file that
// became shorter, or begins otherwise, is kept beside its copy, as X.1.jsonl. deletes is after how
// long the agent deletes a session, 0 for never.
func Keep(ctx context.Context, from string, dirs []string, to string, deletes time.Duration) (k Kept, err error) {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return k, err
	}
	unlock, err := lockDir(to)
	if err != nil {
		return k, err
	}
	defer unlock()
	if err := os.WriteFile(filepath.Join(to, FromName), []byte(from+"\n"), 0o600); err != nil {
		return k, err
	}
	copies := keeper{deletes: deletes}
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(keepsAtOnce)
	for _, dir := range dirs {
		err = filepath.WalkDir(filepath.Join(from, dir), func(file string, item fs.DirEntry, err error) error {
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case errors.Is(err, fs.ErrNotExist): // it was removed meanwhile
				return nil
			case err != nil:
				return err
			case !item.Type().IsRegular():
				return nil // no link is followed
			}
			below, err := filepath.Rel(from, file)
			if err != nil {
				return err
			}
			storage.Progress(ctx, copies.done(), 0)
			work.Go(func() error { return copies.keep(ctx, file, filepath.Join(to, below)) })
			return nil
		})
		if err != nil {
			break
		}
	}
	failed := work.Wait()
	return copies.Kept, cmp.Or(err, failed)
}

// lockDir locks a directory of kept sessions: two processes that keep at once would miss each
// other's copies.
func lockDir(dir string) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("another sessionfs keep is at work in %s: %w", dir, err)
	}
	return func() { f.Close() }, nil
}

// keepsAtOnce is how many files are kept at a time: most of the time goes into waiting for the
// disk, which writes several files as fast as one.
const keepsAtOnce = 8

// keeper keeps files, several at a time.
type keeper struct {
	deletes time.Duration
	// versions has the names under way. A file and those that are kept beside it have one.
	versions storage.FIFOMutexes

	mu sync.Mutex // guards the fields below
	Kept
}

// done returns the number of files so far.
func (k *keeper) done() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.Copied + k.Unchanged
}

// week is how long before it is deleted a session is told of.
const week = 7 * 24 * time.Hour

// keep keeps a file.
func (k *keeper) keep(ctx context.Context, file, to string) error {
	name, _, _ := strings.Cut(filepath.Base(to), ".")
	_, leave, err := k.versions.Lock(ctx, filepath.Join(filepath.Dir(to), name))
	if err != nil {
		return err
	}
	defer leave()
	in, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	isSession := filepath.Ext(file) == ".jsonl"
	at, same, err := copyOf(in, info, to, isSession)
	if err == nil && !same {
		err = replace(in, info, at)
	}
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if isSession && k.deletes > 0 && time.Since(info.ModTime()) > k.deletes-week {
		k.Soon++
	}
	if same {
		k.Unchanged++
		return nil
	}
	if k.Copied++; at != to {
		k.Beside++
	}
	k.Bytes += info.Size()
	return nil
}

// copyOf returns the path at which a file is to be kept: that of its copy if it goes on from that,
// else a new one beside it. same says that it is there already.
func copyOf(in *os.File, info fs.FileInfo, to string, isSession bool) (path string, same bool, err error) {
	for n := 0; ; n++ {
		path = to
		if ext := filepath.Ext(to); n > 0 {
			path = fmt.Sprintf("%s.%d%s", strings.TrimSuffix(to, ext), n, ext)
		}
		kept, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return path, false, nil
		}
		if err != nil {
			return "", false, err
		}
		if !kept.Mode().IsRegular() {
			continue
		}
		if kept.Size() == info.Size() && kept.ModTime().Equal(info.ModTime()) {
			return path, true, nil
		}
		if kept.Size() > info.Size() {
			continue
		}
		goesOn := true
		if isSession || kept.Size() == info.Size() {
			if goesOn, err = beginsLike(in, path, kept.Size()); err != nil {
				return "", false, err
			}
		}
		if goesOn || !isSession {
			return path, goesOn && kept.Size() == info.Size(), nil
		}
	}
}

// beginsLike reports whether a file begins with the content of another one, which has that size.
func beginsLike(in io.ReaderAt, path string, size int64) (bool, error) {
	kept, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer kept.Close()
	same, err := storage.SameBytes(in, 0, kept, 0, size)
	if errors.Is(err, storage.ErrStale) { // it was cut meanwhile
		return false, nil
	}
	return same, err
}

// replace puts a copy of a file at a path, in the place of an earlier one, with the time of the
// file. It is whole or not there.
func replace(in *os.File, info fs.FileInfo, to string) error {
	dir := filepath.Dir(to)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	made, err := os.CreateTemp(dir, ".keep") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(made.Name())
	_, err = io.Copy(made, io.LimitReader(in, info.Size())) // which the kernel does
	if err == nil {
		err = made.Sync()
	}
	if err = errors.Join(err, made.Close()); err == nil {
		err = os.Chtimes(made.Name(), info.ModTime(), info.ModTime())
	}
	if err == nil {
		err = os.Rename(made.Name(), to)
	}
	return err
}

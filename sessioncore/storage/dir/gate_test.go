//go:build linux

package dir

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/childtest"
	"sessionfs/sessioncore/internal/proc"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
)

// gateOf is the path of the outer lock of x.jsonl in a directory.
func gateOf(dir string) string { return filepath.Join(dir, ".x.jsonl.lock.os") }

// childGate PATH: holds the lock at a path as a client does, without a lock file.
func childGate(args []string) error {
	l, err := proc.TryLock(args[0])
	if err != nil {
		return err
	}
	defer l.Release()
	return childtest.SayReady()
}

// childLockFile DIR NAME: holds the lock file alone, as clients without the outer lock did.
func childLockFile(args []string) error {
	file := filepath.Join(args[0], "."+args[1]+".lock")
	if err := os.WriteFile(file, fmt.Appendf(nil, "%d:%d\n", os.Getpid(), time.Now().UnixMilli()), 0o600); err != nil {
		return err
	}
	defer os.Remove(file)
	return childtest.SayReady()
}

// free requires that nobody holds the lock of x.jsonl.
func free(t *testing.T, s *Storage) {
	t.Helper()
	for _, dir := range s.Paths() {
		l, err := proc.TryLock(gateOf(dir))
		require.NoError(t, err, dir)
		l.Release()
	}
	assert.Empty(t, storagetest.Leftovers(t, s.Path()))
}

// TestGateOfAClient: a client's outer lock is respected, and is taken by every lock of ours.
func TestGateOfAClient(t *testing.T) {
	s := openTemp(t)
	pid, end := childtest.Start(t, "gate", gateOf(s.Path()))
	_, err := s.Lock(t.Context(), "x.jsonl")
	require.ErrorIs(t, err, storage.ErrLocked)
	require.ErrorContains(t, err, fmt.Sprintf("held by process %d)", pid))
	soon, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = s.Lock(soon, "x.jsonl")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Empty(t, storagetest.Leftovers(t, s.Path()))
	require.NoError(t, storagetest.Lock(t, s, "y.jsonl")(), "another session's")
	end()

	unlock := storagetest.Lock(t, s, "x.jsonl")
	_, err = proc.TryLock(gateOf(s.Path()))
	require.ErrorIs(t, err, proc.ErrHeld)
	require.FileExists(t, pathOf(s, ".x.jsonl.lock"))
	require.NoError(t, unlock())
	free(t, s)
}

// TestGateAndLockFileShareTheWait: waiting for both takes no longer than waiting for one. The clock is synctest's.
func TestGateAndLockFileShareTheWait(t *testing.T) {
	s := openTemp(t)
	_, end := childtest.Start(t, "lockfile", s.Path(), "x.jsonl")
	for _, held := range []time.Duration{0, 300 * time.Millisecond, 2 * storage.LockLimit} {
		l, err := proc.TryLock(gateOf(s.Path()))
		require.NoError(t, err)
		synctest.Test(t, func(t *testing.T) {
			go func() {
				time.Sleep(held)
				l.Release()
			}()
			start := time.Now()
			_, err := s.Lock(t.Context(), "x.jsonl")
			assert.ErrorIs(t, err, storage.ErrLocked)
			assert.Equal(t, storage.LockLimit, time.Since(start))
			time.Sleep(held)
		})
	}
	end()
	free(t, s)
}

// TestGateIsGivenBack: whoever fails to get the lock file holds the outer lock no longer.
func TestGateIsGivenBack(t *testing.T) {
	s := openTemp(t)
	file := pathOf(s, ".x.jsonl.lock")
	require.NoError(t, os.Mkdir(file, 0o700))
	soon, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := s.Lock(soon, "x.jsonl")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, os.Remove(file))
	free(t, s)

	_, err = s.Lock(t.Context(), "missing/x.jsonl")
	require.ErrorIs(t, err, os.ErrNotExist)
	l, err := proc.TryLock(gateOf(pathOf(s, "missing")))
	require.NoError(t, err)
	l.Release()
}

// TestGatesOfAllPaths: clients that go through a link have another outer lock, and all of them are taken or none.
func TestGatesOfAllPaths(t *testing.T) {
	s := openTemp(t)
	top := t.TempDir()
	link, missing := filepath.Join(top, "link"), filepath.Join(top, "missing")
	require.NoError(t, os.Symlink(s.Path(), link))
	s.AlsoAt(link, s.Path(), link+"/", top, missing)
	require.Equal(t, []string{s.Path(), link}, s.Paths())
	unlock := storagetest.Lock(t, s, "x.jsonl")
	for _, dir := range s.Paths() {
		_, err := proc.TryLock(gateOf(dir))
		require.ErrorIs(t, err, proc.ErrHeld)
	}
	require.NoError(t, unlock())
	for _, dir := range s.Paths() {
		_, end := childtest.Start(t, "gate", gateOf(dir))
		soon, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		_, err := s.Lock(soon, "x.jsonl")
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded, dir)
		end()
		free(t, s)
	}
}

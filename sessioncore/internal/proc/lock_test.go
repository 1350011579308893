//go:build linux

package proc

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/childtest"
)

// TestChild is not a test: it is the main function of the child process.
func TestChild(*testing.T) {
	childtest.Run(map[string]func([]string) error{"hold": func(args []string) error {
		l, err := TryLock(args[0])
		if err != nil {
			return err
		}
		defer l.Release()
		return childtest.SayReady()
	}, "take": func(args []string) error {
		end := make(chan error)
		go func() { end <- childtest.SayReady() }()
		return takeUntil(args[0], end)
	}})
}

// takeUntil takes a lock and gives it back, over and over.
func takeUntil(path string, end <-chan error) error {
	for {
		l, err := TryLock(path)
		if err != nil {
			return err
		}
		l.Release()
		select {
		case err := <-end:
			return err
		default:
		}
	}
}

// TestLock: a lock is held by one process until that releases it or ends, and each process sees which one.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	require.False(t, IsLocked(path))
	require.Zero(t, LockHolder(path))
	l, err := TryLock(path)
	require.NoError(t, err)
	require.NoFileExists(t, path)
	require.True(t, IsLocked(path))
	require.False(t, IsLocked(path+"2"))
	_, err = TryLock(path)
	require.ErrorIs(t, err, ErrHeld)
	require.Equal(t, os.Getpid(), LockHolder(path))
	l.Release()
	require.False(t, IsLocked(path))
	require.Zero(t, LockHolder(path))

	pid, end := childtest.Start(t, "hold", path)
	require.True(t, IsLocked(path))
	require.Equal(t, pid, LockHolder(path))
	end()
	require.False(t, IsLocked(path), "it went with its process")
	require.Zero(t, LockHolder(path))
}

// TestLockHolderKeepsNoDescriptor: a look for the holder of a free lock leaves no socket open.
func TestLockHolderKeepsNoDescriptor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "free.lock")
	before := openDescriptors(t)
	const looks = 10 // the runtime may open a descriptor of its own meanwhile
	for range looks {
		require.Zero(t, LockHolder(path))
	}
	require.Less(t, openDescriptors(t), before+looks)
}

// openDescriptors returns the number of descriptors that this process has open.
func openDescriptors(t *testing.T) int {
	descriptors, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(descriptors)
}

// TestProbingTakesNothing: neither we nor a client in another process ever find a lock taken by those who look whether it
// is.
func TestProbingTakesNothing(t *testing.T) {
	dir := t.TempDir()
	ours, another := filepath.Join(dir, "ours.lock"), filepath.Join(dir, "another.lock")
	_, endAnother := childtest.Start(t, "take", another)
	const probes, probers = 100_000, 4
	var all sync.WaitGroup
	for range probers {
		all.Go(func() {
			for range probes / probers {
				IsLocked(ours)
				IsLocked(another)
			}
		})
	}
	end := make(chan error)
	go func() {
		all.Wait()
		end <- nil
	}()
	require.NoError(t, takeUntil(ours, end))
	endAnother() // fails if it could not take its lock
}

// TestSocket: names of sockets that the client was observed to bind.
func TestSocket(t *testing.T) {
	for path, want := range map[string]string{
		"":                        "dd4458733774f8b02ff557a2e70c6e06",
		"/tmp/config.yml.lock":    "71327ba360366b2a3eb5de2fa0093fa0",
		"/tmp/test.lock":          "c0b11536af4af31f2f1b828aaf87ec00",
		"/tmp/日本/config.yml.lock": "8e86d6a4347e8cc9794efc489b074c6b",
	} {
		require.Equal(t, "@omp-file-lock-"+want, LockSocket(path), path)
	}
}

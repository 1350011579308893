//go:build linux

package dir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/childtest"
	"sessionfs/sessioncore/internal/proc"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
)

// openTemp returns a storage of a new directory with files of one line, directories (sub/) and links (name -> target).
func openTemp(t *testing.T, files ...string) *Storage {
	t.Helper()
	s, err := Open(t.TempDir())
	require.NoError(t, err)
	for _, file := range files {
		name, target, isLink := strings.Cut(file, " -> ")
		require.NoError(t, os.MkdirAll(filepath.Dir(pathOf(s, name)), 0o700))
		switch {
		case isLink:
			require.NoError(t, os.Symlink(target, pathOf(s, name)))
		case strings.HasSuffix(name, "/"):
			require.NoError(t, os.MkdirAll(pathOf(s, name), 0o700))
		default:
			writeDisk(t, s, name, "one\n")
		}
	}
	return s
}

// pathOf returns the path of a name.
func pathOf(s *Storage, name string) string { return filepath.Join(s.Path(), name) }

// writeDisk writes a file on disk, bypassing the storage.
func writeDisk(t *testing.T, s *Storage, name, data string) {
	t.Helper()
	require.NoError(t, os.WriteFile(pathOf(s, name), []byte(data), 0o600))
}

// readDisk returns the content of a file on disk, bypassing the storage.
func readDisk(t *testing.T, s *Storage, name string) string {
	t.Helper()
	data, err := os.ReadFile(pathOf(s, name))
	require.NoError(t, err)
	return string(data)
}

// needRoot skips a test that only root can run.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
}

// openPublic is openTemp for a directory that all users reach, with files that they may write.
func openPublic(t *testing.T, names ...string) *Storage {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "sessioncore")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s, err := Open(dir)
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o777))
	for _, name := range names {
		writeDisk(t, s, name, "one\n")
		require.NoError(t, os.Chmod(pathOf(s, name), 0o666))
	}
	return s
}

// asNobody calls do as the owner of the given paths, a user without processes. An ordinary user stays the same.
func asNobody(t *testing.T, do func(), owned ...string) {
	t.Helper()
	if os.Geteuid() != 0 {
		do()
		return
	}
	// It is below 65,536, the number of ids that a container may have, and differs between runs.
	nobody := 20_000 + os.Getpid()%40_000
	for _, path := range owned {
		require.NoError(t, os.Chown(path, nobody, nobody))
	}
	require.NoError(t, storagetest.As(nobody, func() error {
		do()
		return nil
	}))
}

// childTasks are the tasks of a child process. Each prints a line when it is ready, if its parent waits for that.
var childTasks = map[string]func(args []string) error{
	"append":   childAppend,
	"lockfile": childLockFile,
	"gate":     childGate,
	"hold":     childHold,
}

// TestChild is not a test: it is the main function of the child process.
func TestChild(*testing.T) { childtest.Run(childTasks) }

// childAppend DIR NAME: goroutines append lines to x.jsonl under the lock.
func childAppend(args []string) error {
	s, err := Open(args[0])
	if err != nil {
		return err
	}
	return appendLines(s, args[1])
}

const (
	appendWriters = 4 // goroutines of each process
	appendedLines = 500
	longestLine   = 400 // characters of text
)

// appendLines appends lines with the name of a process, concurrently to another process. Lines are long and of different lengths,
// so that a torn or mixed line is noticed.
func appendLines(s storage.Storage, process string) error {
	failed := make([]error, appendWriters)
	var all sync.WaitGroup
	for writer := range appendWriters {
		all.Go(func() {
			for i := 0; i < appendedLines && failed[writer] == nil; i++ {
				text := strings.Repeat(process, i%longestLine)
				line := fmt.Sprintf("%s %d %d %s.\n", process, writer, i, text)
				failed[writer] = appendLocked(s, line)
			}
		})
	}
	all.Wait()
	return errors.Join(failed...)
}

// appendLocked appends a line to x.jsonl under its lock.
func appendLocked(s storage.Storage, line string) error {
	unlock, err := storagetest.LockPatiently(s, "x.jsonl")
	if err != nil {
		return err
	}
	_, err = s.Append("x.jsonl", []byte(line))
	return errors.Join(err, unlock())
}

// childHold PATH: holds the file open for writing, as a live client does.
func childHold(args []string) error {
	f, err := os.OpenFile(args[0], os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	return errors.Join(childtest.SayReady(), f.Close())
}

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
	text := fmt.Appendf(nil, "%d:%d\n", os.Getpid(), time.Now().UnixMilli())
	err := os.WriteFile(file, text, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(file)
	return childtest.SayReady()
}

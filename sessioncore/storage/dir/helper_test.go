//go:build linux

package dir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/childtest"
	"sessionfs/sessioncore/internal/proc"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
)

func openTemp(t *testing.T) *Storage {
	t.Helper()
	s, err := Open(t.TempDir())
	require.NoError(t, err)
	return s
}

// pathOf returns the path of a name.
func pathOf(s *Storage, name string) string { return filepath.Join(s.Path(), name) }

// with makes a storage use other system calls until the function that it returns is called.
func (s *Storage) with(sys calls) (back func()) {
	s.sys = sys
	return func() { s.sys = kernel }
}

func (s *Storage) appendWith(sys calls, name string, data []byte) (storage.Stat, error) {
	defer s.with(sys)()
	return s.Append(name, data)
}

func (s *Storage) replaceWith(sys calls, name string, r storage.Replacement) (storage.Stat, error) {
	defer s.with(sys)()
	return s.Replace(name, r)
}

func (s *Storage) syncWith(sys calls, name string) error {
	defer s.with(sys)()
	return s.Sync(name)
}

// childTasks are the tasks of a child process. Each prints a line when it is ready, if its parent waits for that.
var childTasks = map[string]func(args []string) error{
	"append":   childAppend,
	"lockfile": childLockFile,
	"gate":     childGate,
	"hold":     childHold,
	"live":     childLive,
	"left":     childLeft,
	"chown":    childChown,
}

// TestChild is not a test: it is the main function of the child process.
func TestChild(*testing.T) { childtest.Run(childTasks) }

// childAppend DIR NAME WHO WRITERS LINES: goroutines append lines under the lock.
func childAppend(args []string) error {
	s, err := Open(args[0])
	if err != nil {
		return err
	}
	writers, _ := strconv.Atoi(args[3])
	lines, _ := strconv.Atoi(args[4])
	return appendLines(s, args[1], args[2], writers, lines)
}

// appendLines is what childAppend and its parent run concurrently. Lines are long and of different lengths, so that a
// torn or mixed line is noticed.
func appendLines(s storage.Storage, name, who string, writers, lines int) error {
	failed := make([]error, writers)
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range lines {
				line := fmt.Sprintf("%s %d %d %s.\n", who, w, i, strings.Repeat(who, i%400))
				unlock, err := storagetest.LockPatiently(s, name)
				if err == nil {
					_, err = s.Append(name, []byte(line))
					err = errors.Join(err, unlock())
				}
				if err != nil {
					failed[w] = err
					return
				}
			}
		})
	}
	all.Wait()
	return errors.Join(failed...)
}

// childHold PATH: holds the file open for writing, as a live client does.
func childHold(args []string) error {
	f, err := os.OpenFile(args[0], os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	return errors.Join(childtest.SayReady(), f.Close())
}

// childLive DIR NAME: prints the results of Writers and of the scan of /proc.
func childLive(args []string) error {
	s, err := Open(args[0])
	if err != nil {
		return err
	}
	st, err := s.Stat(args[1])
	if err != nil {
		return err
	}
	state, err := s.Writers(args[1])
	seen, _ := proc.Find("/proc", st, 0)
	fmt.Println(state, seen)
	return err
}

// childLeft SHARED: a lock that its holder could not remove, in a directory that nobody may write to for a moment, is taken
// again at once when it can be.
func childLeft(args []string) error {
	dir, err := os.MkdirTemp("", "left")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, err := Open(dir)
	if err != nil {
		return err
	}
	if args[0] == "shared" {
		s.SetSharing(SharingAlways)
	}
	for _, mode := range []os.FileMode{0o500, 0} {
		unlock, err := s.Lock(context.Background(), "x.jsonl")
		if err == nil {
			err = os.Chmod(dir, mode)
		}
		if err != nil {
			return err
		}
		if err := unlock(); !errors.Is(err, os.ErrPermission) {
			return fmt.Errorf("want a permission error, got %v", err)
		}
		if err := os.Chmod(dir, 0o700); err != nil {
			return err
		}
		if _, err := os.Stat(pathOf(s, ".x.jsonl.lock")); err != nil {
			return err
		}
		unlock, err = s.Lock(context.Background(), "x.jsonl")
		if err == nil {
			err = unlock()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// childChown DIR NAME: replaces another user's file, which must be refused.
func childChown(args []string) error {
	s, err := Open(args[0])
	if err != nil {
		return err
	}
	st, err := s.Stat(args[1])
	if err != nil {
		return err
	}
	if _, err := s.Replace(args[1], storage.Replacement{Expect: st.Token, Write: storagetest.Content("mine\n")}); !errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("want a permission error, got %v", err)
	}
	return nil
}

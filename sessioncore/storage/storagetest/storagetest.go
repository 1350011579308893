package storagetest

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage"
)

// Generous is the maximum time that a test waits for something, on a machine under load.
const Generous = 30 * time.Second

// Leftovers returns the paths of temporary and lock files below dir.
func Leftovers(t *testing.T, dir string) (names []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".tmp") || strings.HasSuffix(path, ".lock") {
			names = append(names, path)
		}
		return err
	}))
	return names
}

// Open opens a file until the end of the test.
func Open(t testing.TB, s storage.Files, name string) storage.Object {
	t.Helper()
	o, err := s.Open(name)
	require.NoError(t, err)
	t.Cleanup(func() { _ = o.Close() })
	return o
}

// Read returns the content of a file.
func Read(t testing.TB, s storage.Files, name string) string {
	t.Helper()
	o := Open(t, s, name)
	defer o.Close()
	return ReadObject(t, o)
}

// ReadObject returns the content of an open file.
func ReadObject(t testing.TB, o storage.Object) string {
	t.Helper()
	st, err := o.Stat()
	require.NoError(t, err)
	data, err := io.ReadAll(io.NewSectionReader(o, 0, st.Size))
	require.NoError(t, err)
	return string(data)
}

// Stat returns the state of a name.
func Stat(t testing.TB, s storage.Files, name string) storage.Stat {
	t.Helper()
	st, err := s.Stat(name)
	require.NoError(t, err)
	return st
}

// Content returns a write function for Replace that writes text.
func Content(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

// Replace gives a file another content if it is as it is now, or makes it.
func Replace(s storage.Storage, name, text string) (storage.Stat, error) {
	now, _ := s.Stat(name)
	return s.Replace(name, storage.Replacement{Expect: now.Token, Write: Content(text)})
}

// Lock locks a file, as patiently as LockPatiently.
func Lock(t *testing.T, s storage.Journal, name string) (unlock func() error) {
	t.Helper()
	unlock, err := LockPatiently(s, name)
	require.NoError(t, err)
	return unlock
}

// Reads are the operations of Files that take a name.
var Reads = map[string]func(s storage.Files, name string) error{
	"Stat": func(s storage.Files, name string) error { _, err := s.Stat(name); return err },
	"Open": func(s storage.Files, name string) error {
		o, err := s.Open(name)
		if err == nil {
			err = o.Close()
		}
		return err
	},
	"List": func(s storage.Files, name string) error {
		return s.List(name, nil, func(storage.Item) bool { return false })
	},
}

// Writes are the operations of Journal.
var Writes = map[string]func(s storage.Journal, name string) error{
	"Append": func(s storage.Journal, name string) error { _, err := s.Append(name, []byte("x\n")); return err },
	"Replace": func(s storage.Journal, name string) error {
		_, err := s.Replace(name, storage.Replacement{Write: Content("x\n")})
		return err
	},
	"overwrite": func(s storage.Journal, name string) error {
		_, err := s.Replace(name, storage.Replacement{Head: []byte("x")})
		return err
	},
	"Sync": func(s storage.Journal, name string) error { return s.Sync(name) },
	"Lock": func(s storage.Journal, name string) error {
		unlock, err := s.Lock(context.Background(), name)
		if err == nil {
			err = unlock()
		}
		return err
	},
}

// LockPatiently locks a file. It tries again if a machine under load took longer than the lock's limit.
func LockPatiently(s storage.Journal, name string) (unlock func() error, err error) {
	for start := time.Now(); time.Since(start) < Generous; {
		unlock, err = s.Lock(context.Background(), name)
		if !errors.Is(err, storage.ErrLocked) {
			break
		}
	}
	return unlock, err
}

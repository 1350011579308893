package storage_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
	"sessionfs/sessioncore/storage/storagetest/every"
)

// methods calls every method of Storage, and those of Object, on what there is: the directory d, the file d/x and the
// open file o.
func methods(t *testing.T, s every.Storage, o storage.Object, token storage.Token) map[string]func() error {
	ctx := context.Background()
	calls := map[string]func() error{
		"Readlink": func() error { _, err := s.Readlink("d/link"); return err },
		"HardLink": func() error { return s.HardLink("d/x", "d/second") },
		"MkdirAll": func() error { return s.MkdirAll("d") },
		"Move": func() error {
			s.WriteFile(t, "e/x.jsonl", "x")
			return s.Move("e/x.jsonl", "d/moved.jsonl", ".jsonl")
		},
		"CreatePending": func() error { return s.CreatePending("d/new", false, storagetest.Content("x")) },
		"Pending":       func() error { s.Pending("d/new"); return nil },
		"Keep": func() error {
			unlock, err := s.Lock(ctx, "d/new")
			if err != nil {
				return err
			}
			return errors.Join(s.Keep(ctx, "d/new", nil), unlock())
		},
		"ReadAhead": func() error { s.ReadAhead([]string{"d/x", "none", ""}); return nil },
		"KeepAll":   func() error { s.KeepAll(ctx); return nil },
		"Overwrite": func() error {
			_, err := s.Overwrite("d/x", token, []byte("y"))
			return err
		},
		"Replace": func() error { _, err := s.Replace("d/y", storage.Token{}, storagetest.Content("")); return err },
		"ReplaceIf": func() error {
			_, err := s.ReplaceIf("d/z", storage.Token{}, storagetest.Content(""), func(io.Writer) (storage.Token, error) { return storage.Token{}, nil })
			return err
		},
		"Object.ReadAt":  func() error { _, err := o.ReadAt(make([]byte, 1), 0); return err },
		"Object.Stat":    func() error { _, err := o.Stat(); return err },
		"Object.Fd":      func() error { _, err := o.Fd(); return err },
		"Object.Writers": func() error { _, err := o.Writers(); return err },
		"Object.Close":   o.Close,
	}
	for op, do := range directories {
		calls[op] = func() error { return do(s.Storage, "d") }
	}
	for op, do := range storagetest.Operations {
		if calls[op] == nil {
			calls[op] = func() error { return do(s.Storage, "d/x") }
		}
	}
	return calls
}

// TestStorageSupports: every method works, or answers unsupported where the implementation is known to be without it.
func TestStorageSupports(t *testing.T) {
	every.Readable(t, func(t *testing.T, s every.Storage) {
		s.WriteFile(t, "d/x", "x")
		if s.Link != nil {
			s.Link(t, "d/link", "there")
		}
		o, err := s.Open("d/x")
		require.NoError(t, err)
		var names []string
		for typ, prefix := range map[reflect.Type]string{reflect.TypeFor[storage.Storage](): "", reflect.TypeFor[storage.Object](): "Object."} {
			for i := range typ.NumMethod() {
				names = append(names, prefix+typ.Method(i).Name)
			}
		}
		// In an order in which each finds what it needs: Overwrite the file as it was, Keep a pending file, Close the last.
		slices.Sort(names)
		first := []string{"Overwrite", "CreatePending", "Keep"}
		names = append(first, slices.DeleteFunc(names, func(name string) bool { return slices.Contains(first, name) || name == "Object.Close" })...)
		names = append(names, "Object.Close")
		calls := methods(t, s, o, storagetest.Stat(t, s, "d/x").Token)
		require.Len(t, calls, len(names))
		for _, name := range names {
			require.Contains(t, calls, name)
			if err := calls[name](); slices.Contains(s.Cannot, name) {
				assert.ErrorIs(t, err, storage.ErrUnsupported, name)
			} else {
				assert.NoError(t, err, name)
			}
		}
	})
}

// TestErrUnsupported: what a storage cannot do is told from what its file system cannot.
func TestErrUnsupported(t *testing.T) {
	require.ErrorIs(t, storage.ErrUnsupported, errors.ErrUnsupported)
	require.ErrorIs(t, unix.ENOTSUP, errors.ErrUnsupported)
	require.NotErrorIs(t, unix.ENOTSUP, storage.ErrUnsupported)
}

func TestStorageOverwrite(t *testing.T) {
	every.Each(t, func(t *testing.T, s every.Storage) {
		s.WriteFile(t, "x.jsonl", "one\ntwo\n")
		before := storagetest.Stat(t, s, "x.jsonl")
		pinned, err := s.Open("x.jsonl")
		require.NoError(t, err)
		defer pinned.Close()
		after, err := s.Overwrite("x.jsonl", before.Token, []byte("ONE"))
		require.NoError(t, err)
		assert.Equal(t, storagetest.Stat(t, s, "x.jsonl"), after)
		assert.NotEqual(t, before.Token, after.Token)
		assert.True(t, before.SameObject(after.Token))
		assert.Equal(t, "ONE\ntwo\n", storagetest.Read(t, s, "x.jsonl"))
		assert.Equal(t, "ONE\ntwo\n", storagetest.ReadObject(t, pinned), "it is the file that was opened before")

		_, err = s.Overwrite("x.jsonl", before.Token, []byte("lost"))
		assert.ErrorIs(t, err, storage.ErrStale)
		_, err = s.Overwrite("x.jsonl", after.Token, []byte("longer than the file is"))
		assert.ErrorIs(t, err, storage.ErrStale)
		assert.Equal(t, after, storagetest.Stat(t, s, "x.jsonl"))
	})
}

func TestStorageReplaceIf(t *testing.T) {
	forbidden := errors.New("forbidden")
	every.Each(t, func(t *testing.T, s every.Storage) {
		s.WriteFile(t, "x.jsonl", "one\n")
		before := storagetest.Stat(t, s, "x.jsonl")
		replace := func(ready func() error) (after storage.Stat, order []string, err error) {
			after, err = s.ReplaceIf("x.jsonl", before.Token, func(out io.Writer) error {
				order = append(order, "write")
				return storagetest.Content("two\n")(out)
			}, func(io.Writer) (storage.Token, error) {
				order = append(order, "ready")
				return before.Token, ready()
			})
			return after, order, err
		}
		if slices.Contains(s.Cannot, "ReplaceIf") {
			_, order, err := replace(func() error { return nil })
			assert.ErrorIs(t, err, storage.ErrUnsupported)
			assert.Empty(t, order, "Replace is to do it all")
			return
		}
		_, order, err := replace(func() error { return forbidden })
		assert.ErrorIs(t, err, forbidden)
		assert.Equal(t, []string{"write", "ready"}, order)
		assert.Equal(t, before, storagetest.Stat(t, s, "x.jsonl"))
		_, _, err = replace(func() error { _, err := s.Append("x.jsonl", []byte("more\n")); return err })
		assert.ErrorIs(t, err, storage.ErrStale)
		assert.Equal(t, "one\nmore\n", storagetest.Read(t, s, "x.jsonl"))

		before = storagetest.Stat(t, s, "x.jsonl")
		after, _, err := replace(func() error { return nil })
		require.NoError(t, err)
		assert.Equal(t, storagetest.Stat(t, s, "x.jsonl"), after)
		assert.False(t, before.SameObject(after.Token))
		assert.Equal(t, "two\n", storagetest.Read(t, s, "x.jsonl"))
	})
}

// TestStorageWriters: whoever reads a file, or wrote to it, does not write to it.
func TestStorageWriters(t *testing.T) {
	every.Each(t, func(t *testing.T, s every.Storage) {
		s.WriteFile(t, "x.jsonl", "one\n")
		o, err := s.Open("x.jsonl")
		require.NoError(t, err)
		defer o.Close()
		_, err = s.Append("x.jsonl", []byte("two\n"))
		require.NoError(t, err)
		state, err := s.Writers("x.jsonl")
		require.NoError(t, err)
		assert.NotEqual(t, storage.WritersPresent, state)
		state, err = o.Writers()
		if err != nil {
			assert.ErrorIs(t, err, or(s, "Object.Writers", storage.ErrLeaseKept))
		}
		assert.NotEqual(t, storage.WritersPresent, state)
	})
}

func TestStorageReadlink(t *testing.T) {
	every.Readable(t, func(t *testing.T, s every.Storage) {
		require.Equal(t, slices.Contains(s.Cannot, "Readlink"), s.Link == nil)
		if s.Link == nil {
			return
		}
		s.WriteFile(t, "d/x.jsonl", "")
		s.Link(t, "d/link", "../d//x.jsonl")
		target, err := s.Readlink("d/link")
		require.NoError(t, err)
		assert.Equal(t, "../d//x.jsonl", target, "as stored")
		assert.Equal(t, storage.KindLink, storagetest.Stat(t, s, "d/link").Kind)
		_, err = s.Open("d/link")
		assert.ErrorIs(t, err, fs.ErrNotExist, "no link is followed")
		_, err = s.Readlink("d/x.jsonl")
		assert.Error(t, err)
	})
}

func TestStorageHardLink(t *testing.T) {
	every.Each(t, func(t *testing.T, s every.Storage) {
		s.WriteFile(t, "d/x", "x")
		if slices.Contains(s.Cannot, "HardLink") {
			require.ErrorIs(t, s.HardLink("d/x", "d/y"), storage.ErrUnsupported)
			return
		}
		require.NoError(t, s.HardLink("d/x", "d/y"))
		require.True(t, storagetest.Stat(t, s, "d/y").SameObject(storagetest.Stat(t, s, "d/x").Token))
		require.ErrorIs(t, s.HardLink("d/x", "d/y"), fs.ErrExist)
		require.ErrorIs(t, s.HardLink("d/none", "d/z"), fs.ErrNotExist)
		require.ErrorIs(t, s.HardLink("d/x", "e"), storage.ErrBadName)
		require.ErrorIs(t, s.HardLink("d/x", "d/../e"), storage.ErrBadName)
	})
}

// TestStoragePending: a pending file is like others, and stays what it is when it goes to disk.
func TestStoragePending(t *testing.T) {
	ctx := context.Background()
	every.Each(t, func(t *testing.T, s every.Storage) {
		if slices.Contains(s.Cannot, "CreatePending") {
			err := s.CreatePending("new/x.jsonl", true, func(io.Writer) error { t.Error("called"); return nil })
			assert.ErrorIs(t, err, storage.ErrUnsupported)
			s.WriteFile(t, "x.jsonl", "")
			assert.False(t, s.Pending("x.jsonl"))
			assert.Empty(t, s.KeepAll(ctx))
			return
		}
		failed := errors.New("the writer failed")
		assert.ErrorIs(t, s.CreatePending("new/x.jsonl", true, func(io.Writer) error { return failed }), failed)
		assert.False(t, s.Pending("new/x.jsonl"))
		require.NoError(t, s.CreatePending("new/x.jsonl", false, storagetest.Content("one\n")))
		require.NoError(t, s.CreatePending("new/unused.jsonl", false, storagetest.Content("")))
		require.NoError(t, s.CreatePending("new/used.jsonl", true, storagetest.Content("used\n")))
		assert.ErrorIs(t, s.CreatePending("new/x.jsonl", false, storagetest.Content("")), fs.ErrExist)
		assert.True(t, s.Pending("new/x.jsonl"))

		made := storagetest.Stat(t, s, "new/x.jsonl")
		assert.Equal(t, storagetest.Stat(t, s, "").UID, made.UID)
		assert.Equal(t, storage.KindDir, storagetest.Stat(t, s, "new").Kind)
		o, err := s.Open("new/x.jsonl")
		require.NoError(t, err)
		defer o.Close()
		now, err := o.Stat()
		require.NoError(t, err)
		assert.Equal(t, made, now)
		unlock := storagetest.Lock(t, s, "new/x.jsonl")
		added, err := s.Append("new/x.jsonl", []byte("two\n"))
		require.NoError(t, err)
		_, err = s.Overwrite("new/x.jsonl", added.Token, []byte("ONE"))
		require.NoError(t, err)
		state, err := s.Writers("new/x.jsonl")
		require.NoError(t, err)
		assert.Equal(t, storage.WritersNone, state)
		require.NoError(t, s.Sync("new/x.jsonl"))
		assert.True(t, s.Pending("new/x.jsonl"), "Sync does not keep")
		st, err := s.Replace("new/x.jsonl", storagetest.Stat(t, s, "new/x.jsonl").Token, storagetest.Content("1\n2\n"))
		require.NoError(t, err)
		assert.Equal(t, storagetest.Stat(t, s, "new/x.jsonl"), st)
		require.NoError(t, s.Keep(ctx, "new/x.jsonl", []byte("3\n")))
		require.NoError(t, unlock())
		assert.False(t, s.Pending("new/x.jsonl"))
		assert.Equal(t, "1\n2\n3\n", storagetest.Read(t, s, "new/x.jsonl"))

		assert.Empty(t, s.KeepAll(ctx))
		assert.False(t, s.Pending("new/used.jsonl"))
		assert.Equal(t, "used\n", storagetest.Read(t, s, "new/used.jsonl"))
		assert.True(t, s.Pending("new/unused.jsonl"))
	})
}

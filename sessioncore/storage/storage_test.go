package storage_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
	"sessionfs/sessioncore/storage/storagetest/every"
)

// directories are what takes the name of a directory that is there.
var directories = map[string]func(s storage.Storage, name string) error{
	"List": func(s storage.Storage, name string) error { _, err := s.List(name); return err },
	"Each": func(s storage.Storage, name string) error {
		return s.Each(name, func(storage.Item) bool { return true })
	},
	"ListStat": func(s storage.Storage, name string) error {
		_, err := s.ListStat(name, func(storage.Item) bool { return true })
		return err
	},
	"StatNames": func(s storage.Storage, name string) error {
		return s.StatNames(name, []string{"a"}, func(int, storage.Stat) {})
	},
	"CheckWritable": func(s storage.Storage, name string) error { return s.CheckWritable(name) },
}

// or is the error of an operation, or that it is unsupported.
func or(s every.Storage, op string, err error) error {
	if slices.Contains(s.Cannot, op) {
		return storage.ErrUnsupported
	}
	return err
}

func TestStorageRefusesBadNames(t *testing.T) {
	every.Readable(t, func(t *testing.T, s every.Storage) {
		for _, name := range []string{"..", "/x", "a//b", "a/../b", "./x", "x/", "a\x00b", "../x"} {
			for op, do := range storagetest.Operations {
				assert.ErrorIs(t, do(s.Storage, name), or(s, op, storage.ErrBadName), "%s(%q)", op, name)
			}
			for op, do := range directories {
				assert.ErrorIs(t, do(s.Storage, name), or(s, op, storage.ErrBadName), "%s(%q)", op, name)
			}
			assert.ErrorIs(t, s.MkdirAll(name), or(s, "MkdirAll", storage.ErrBadName), "MkdirAll(%q)", name)
			assert.ErrorIs(t, s.CreatePending(name, false, storagetest.Content("")), or(s, "CreatePending", storage.ErrBadName))
			_, err := s.Readlink(name)
			assert.ErrorIs(t, err, or(s, "Readlink", storage.ErrBadName), "Readlink(%q)", name)
		}
		for op, do := range storagetest.Operations {
			if op != "Stat" && op != "Open" { // "" is the root; Open says that it is no file
				assert.ErrorIs(t, do(s.Storage, ""), or(s, op, storage.ErrBadName), "%s of the root", op)
			}
		}
	})
}

func TestStorageSaysWhatIsMissing(t *testing.T) {
	every.Readable(t, func(t *testing.T, s every.Storage) {
		s.WriteFile(t, "file.jsonl", "{}\n")
		for _, name := range []string{"none/x.jsonl", "file.jsonl/x.jsonl", "x.jsonl"} {
			for op, do := range storagetest.Operations {
				if name == "x.jsonl" && (op == "Replace" || op == "ReplaceIf" || op == "Lock") { // these make what is missing
					continue
				}
				assert.ErrorIs(t, do(s.Storage, name), or(s, op, fs.ErrNotExist), "%s(%q)", op, name)
			}
			_, err := s.Readlink(name)
			assert.ErrorIs(t, err, or(s, "Readlink", fs.ErrNotExist), "Readlink(%q)", name)
		}
		for _, name := range []string{"none/x.jsonl", "file.jsonl/x.jsonl", "x.jsonl", "file.jsonl"} {
			for op, do := range directories {
				assert.ErrorIs(t, do(s.Storage, name), or(s, op, fs.ErrNotExist), "%s(%q)", op, name)
			}
		}
	})
}

func TestStorageDirectories(t *testing.T) {
	every.Each(t, func(t *testing.T, s every.Storage) {
		s.WriteFile(t, "b/two.jsonl", "2\n")
		s.WriteFile(t, "b/one.jsonl", "1\n")
		s.WriteFile(t, "a.jsonl", "")
		require.NoError(t, s.MkdirAll("c/d"))
		require.NoError(t, s.MkdirAll("c/d"))
		require.NoError(t, s.MkdirAll(""))

		items, err := s.List("")
		require.NoError(t, err)
		assert.Equal(t, []storage.Item{{"a.jsonl", storage.KindFile}, {"b", storage.KindDir}, {"c", storage.KindDir}}, items)
		items, err = s.List("b")
		require.NoError(t, err)
		assert.Equal(t, []storage.Item{{"one.jsonl", storage.KindFile}, {"two.jsonl", storage.KindFile}}, items)
		items, err = s.List("c/d")
		require.NoError(t, err)
		assert.Empty(t, items)

		assert.Equal(t, storage.KindDir, storagetest.Stat(t, s, "").Kind)
		assert.Equal(t, storage.KindDir, storagetest.Stat(t, s, "c/d").Kind)
		assert.Equal(t, uint32(0o700), storagetest.Stat(t, s, "c/d").Mode)
		assert.NotEqual(t, storagetest.Stat(t, s, "c").Token, storagetest.Stat(t, s, "c/d").Token)
		for _, op := range []string{"Open", "Append", "Sync", "Writers", "Overwrite"} {
			assert.ErrorIs(t, storagetest.Operations[op](s.Storage, "c/d"), storage.ErrNotRegular, op)
		}
		_, err = s.Replace("c/d", storagetest.Stat(t, s, "c/d").Token, storagetest.Content("x"))
		assert.ErrorIs(t, err, storage.ErrNotRegular)
		assert.ErrorIs(t, s.MkdirAll("a.jsonl/x"), storage.ErrNotRegular)

		s.Remove(t, "b/one.jsonl")
		_, err = s.Stat("b/one.jsonl")
		assert.ErrorIs(t, err, fs.ErrNotExist)
	})
}

func TestStorageAppend(t *testing.T) {
	every.Each(t, func(t *testing.T, s every.Storage) {
		s.WriteFile(t, "x.jsonl", "one\n")
		before := storagetest.Stat(t, s, "x.jsonl")
		pinned, err := s.Open("x.jsonl")
		require.NoError(t, err)
		defer pinned.Close()

		after, err := s.Append("x.jsonl", []byte("two\nthree\n"))
		require.NoError(t, err)
		assert.Equal(t, storagetest.Stat(t, s, "x.jsonl"), after)
		assert.NotEqual(t, before.Token, after.Token)
		assert.True(t, before.SameObject(after.Token))
		assert.Equal(t, int64(14), after.Size)
		assert.Equal(t, "one\ntwo\nthree\n", storagetest.Read(t, s, "x.jsonl"))
		now, err := pinned.Stat()
		require.NoError(t, err)
		assert.Equal(t, after, now, "growth shows in what was opened before")
		assert.Equal(t, "one\ntwo\nthree\n", storagetest.ReadObject(t, pinned))

		unchanged, err := s.Append("x.jsonl", nil)
		require.NoError(t, err)
		assert.Equal(t, after, unchanged, "nothing appended, nothing changed")
		require.NoError(t, s.Sync("x.jsonl"))
		assert.Equal(t, after, storagetest.Stat(t, s, "x.jsonl"))
	})
}

func TestStorageReplace(t *testing.T) {
	every.Each(t, func(t *testing.T, s every.Storage) {
		made, err := s.Replace("x.jsonl", storage.Token{}, storagetest.Content("one\n"))
		require.NoError(t, err)
		assert.Equal(t, storagetest.Stat(t, s, "x.jsonl"), made)
		assert.Equal(t, uint32(0o600), made.Mode)
		assert.Equal(t, "one\n", storagetest.Read(t, s, "x.jsonl"))

		called := false
		_, err = s.Replace("x.jsonl", storage.Token{}, func(io.Writer) error { called = true; return nil })
		assert.ErrorIs(t, err, storage.ErrStale)
		assert.ErrorIs(t, err, fs.ErrExist)
		assert.False(t, called, "work for nothing")

		_, err = s.Append("x.jsonl", []byte("two\n"))
		require.NoError(t, err)
		_, err = s.Replace("x.jsonl", made.Token, storagetest.Content("lost\n"))
		assert.ErrorIs(t, err, storage.ErrStale)
		assert.NotErrorIs(t, err, fs.ErrExist)
		assert.Equal(t, "one\ntwo\n", storagetest.Read(t, s, "x.jsonl"))

		old := storagetest.Stat(t, s, "x.jsonl")
		st, err := s.Replace("x.jsonl", old.Token, storagetest.Content("three\n"))
		require.NoError(t, err)
		assert.False(t, st.SameObject(old.Token))
		assert.Equal(t, storagetest.Stat(t, s, "x.jsonl"), st)
		assert.Equal(t, "three\n", storagetest.Read(t, s, "x.jsonl"))

		s.Remove(t, "x.jsonl")
		_, err = s.Replace("x.jsonl", st.Token, storagetest.Content("back\n"))
		assert.ErrorIs(t, err, storage.ErrStale)
		assert.NotErrorIs(t, err, fs.ErrNotExist)
		st, err = s.Replace("empty.jsonl", storage.Token{}, storagetest.Content(""))
		require.NoError(t, err)
		assert.Zero(t, st.Size)
	})
}

func TestStorageReplaceChangesNothingWhenItFails(t *testing.T) {
	failed := errors.New("the writer failed")
	every.Each(t, func(t *testing.T, s every.Storage) {
		s.WriteFile(t, "x.jsonl", "one\n")
		before := storagetest.Stat(t, s, "x.jsonl")
		for _, name := range []string{"x.jsonl", "new.jsonl"} {
			expect := before.Token
			if name == "new.jsonl" {
				expect = storage.Token{}
			}
			_, err := s.Replace(name, expect, func(w io.Writer) error {
				_, _ = io.WriteString(w, strings.Repeat("half\n", 50_000))
				return failed
			})
			assert.ErrorIs(t, err, failed)
			assert.Panics(t, func() {
				_, _ = s.Replace(name, expect, func(io.Writer) error { panic("in the writer") })
			})
		}
		assert.Equal(t, before, storagetest.Stat(t, s, "x.jsonl"))
		items, err := s.List("")
		require.NoError(t, err)
		assert.Equal(t, []storage.Item{{"x.jsonl", storage.KindFile}}, items)
	})
}

func TestStorageReplaceSeesWhatHappensMeanwhile(t *testing.T) {
	every.Each(t, func(t *testing.T, s every.Storage) {
		s.WriteFile(t, "x.jsonl", "one\n")
		_, err := s.Replace("x.jsonl", storagetest.Stat(t, s, "x.jsonl").Token, func(w io.Writer) error {
			_, err := s.Append("x.jsonl", []byte("two\n"))
			return err
		})
		assert.ErrorIs(t, err, storage.ErrStale)
		assert.Equal(t, "one\ntwo\n", storagetest.Read(t, s, "x.jsonl"))

		_, err = s.Replace("y.jsonl", storage.Token{}, func(w io.Writer) error {
			s.WriteFile(t, "y.jsonl", "theirs\n")
			return nil
		})
		assert.ErrorIs(t, err, fs.ErrExist)
		assert.Equal(t, "theirs\n", storagetest.Read(t, s, "y.jsonl"))
	})
}

func TestStoragePinsWhatWasOpened(t *testing.T) {
	every.Each(t, func(t *testing.T, s every.Storage) {
		s.WriteFile(t, "x.jsonl", "one\n")
		first, err := s.Open("x.jsonl")
		require.NoError(t, err)
		st, err := s.Replace("x.jsonl", storagetest.Stat(t, s, "x.jsonl").Token, storagetest.Content("two\n"))
		require.NoError(t, err)
		_, err = s.Append("x.jsonl", []byte("more\n"))
		require.NoError(t, err)
		second, err := s.Open("x.jsonl")
		require.NoError(t, err)
		s.Remove(t, "x.jsonl")

		assert.Equal(t, "one\n", storagetest.ReadObject(t, first))
		assert.Equal(t, "two\nmore\n", storagetest.ReadObject(t, second))
		now, err := second.Stat()
		require.NoError(t, err)
		assert.True(t, now.SameObject(st.Token))

		n, err := first.ReadAt(make([]byte, 10), 2)
		assert.Equal(t, 2, n)
		assert.ErrorIs(t, err, io.EOF)
		_, err = first.ReadAt(make([]byte, 1), 100)
		assert.ErrorIs(t, err, io.EOF)
		_, err = first.ReadAt(make([]byte, 1), -1)
		assert.Error(t, err)
		require.NoError(t, first.Close())
		require.NoError(t, second.Close())
		_, err = first.ReadAt(make([]byte, 1), 0)
		assert.ErrorIs(t, err, fs.ErrClosed)
	})
}

func TestStorageLockExcludesGoroutines(t *testing.T) {
	const writers, rounds = 8, 50
	every.Each(t, func(t *testing.T, s every.Storage) {
		s.WriteFile(t, "x.jsonl", "")
		var inside atomic.Int32
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() {
				for i := range rounds {
					unlock, err := storagetest.LockPatiently(s, "x.jsonl")
					if !assert.NoError(t, err) {
						return
					}
					assert.Equal(t, int32(1), inside.Add(1))
					_, err = s.Append("x.jsonl", fmt.Appendf(nil, "%d %d\n", w, i))
					assert.NoError(t, err)
					inside.Add(-1)
					assert.NoError(t, unlock())
				}
			})
		}
		all.Wait()
		assert.Equal(t, writers*rounds, strings.Count(storagetest.Read(t, s, "x.jsonl"), "\n"))
	})
}

func TestStorageLockIsWaitedForSoLong(t *testing.T) {
	every.Each(t, func(t *testing.T, s every.Storage) {
		s.WriteFile(t, "x.jsonl", "")
		unlock := storagetest.Lock(t, s, "x.jsonl")
		start := time.Now()
		_, err := s.Lock(t.Context(), "x.jsonl")
		assert.ErrorIs(t, err, storage.ErrLocked)
		assert.GreaterOrEqual(t, time.Since(start), storage.LockLimit)
		assert.Less(t, time.Since(start), storagetest.Generous)
		require.NoError(t, storagetest.Lock(t, s, "y.jsonl")(), "another file's lock is another")

		got := make(chan error, 1)
		go func() {
			again, err := storagetest.LockPatiently(s, "x.jsonl")
			if err == nil {
				err = again()
			}
			got <- err
		}()
		require.NoError(t, unlock())
		require.NoError(t, <-got)
		assert.NoError(t, unlock(), "a second call does nothing")
		require.NoError(t, storagetest.Lock(t, s, "x.jsonl")())
	})
}

func TestStorageLockEndsWithItsContext(t *testing.T) {
	every.Each(t, func(t *testing.T, s every.Storage) {
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := s.Lock(cancelled, "x.jsonl")
		assert.ErrorIs(t, err, context.Canceled, "also of a lock that is free")

		unlock := storagetest.Lock(t, s, "x.jsonl")
		soon, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		_, err = s.Lock(soon, "x.jsonl")
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.NotErrorIs(t, err, storage.ErrLocked)
		require.NoError(t, unlock())
	})
}

func TestEndsInNewline(t *testing.T) {
	every.Readable(t, func(t *testing.T, s every.Storage) {
		for text, want := range map[string]bool{"": true, "\n": true, "x": false, "x\n": true, "x\ny": false} {
			s.WriteFile(t, "x.jsonl", text)
			o, err := s.Open("x.jsonl")
			require.NoError(t, err)
			got, err := storage.EndsInNewline(o, int64(len(text)))
			require.NoError(t, err)
			assert.Equal(t, want, got, "%q", text)
			if text == "" {
				_, err = storage.EndsInNewline(o, 5)
				assert.ErrorIs(t, err, io.EOF, "shorter than it was said to be")
			}
			require.NoError(t, o.Close())
		}
	})
}

package sessioncore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// operations are all that take a file's name.
var operations = map[string]func(s Storage, name string) error{
	"Stat": func(s Storage, name string) error { _, err := s.Stat(name); return err },
	"Open": func(s Storage, name string) error {
		o, err := s.Open(name)
		if err == nil {
			err = o.Close()
		}
		return err
	},
	"Append": func(s Storage, name string) error { _, err := s.Append(name, []byte("x\n")); return err },
	"Replace": func(s Storage, name string) error {
		_, err := s.Replace(name, Token{}, content("x\n"))
		return err
	},
	"Sync": func(s Storage, name string) error { return s.Sync(name) },
	"Lock": func(s Storage, name string) error {
		unlock, err := s.Lock(context.Background(), name)
		if err == nil {
			err = unlock()
		}
		return err
	},
	"Writers": func(s Storage, name string) error { _, err := s.(WriterFinder).Writers(name); return err },
}

func TestStorageRefusesBadNames(t *testing.T) {
	forEachStorage(t, func(t *testing.T, s storageUnderTest) {
		for _, name := range []string{"..", "/x", "a//b", "a/../b", "./x", "x/", "a\x00b", "../x"} {
			for op, do := range operations {
				assert.ErrorIs(t, do(s.Storage, name), ErrBadName, "%s(%q)", op, name)
			}
			_, err := s.List(name)
			assert.ErrorIs(t, err, ErrBadName, "List(%q)", name)
			assert.ErrorIs(t, s.Storage.(DirMaker).MkdirAll(name), ErrBadName, "MkdirAll(%q)", name)
		}
		for op, do := range operations {
			if op != "Stat" && op != "Open" { // "" is the root; Open says that it is no file
				assert.ErrorIs(t, do(s.Storage, ""), ErrBadName, "%s of the root", op)
			}
		}
	})
}

func TestStorageSaysWhatIsMissing(t *testing.T) {
	forEachStorage(t, func(t *testing.T, s storageUnderTest) {
		s.writeFile(t, "file.jsonl", "{}\n")
		for _, name := range []string{"none/x.jsonl", "file.jsonl/x.jsonl", "x.jsonl"} {
			for op, do := range operations {
				if name == "x.jsonl" && (op == "Replace" || op == "Lock") { // these make what is missing
					continue
				}
				assert.ErrorIs(t, do(s.Storage, name), fs.ErrNotExist, "%s(%q)", op, name)
			}
			_, err := s.List(name)
			assert.ErrorIs(t, err, fs.ErrNotExist, "List(%q)", name)
		}
		_, err := s.List("file.jsonl")
		assert.ErrorIs(t, err, fs.ErrNotExist)
	})
}

func TestStorageDirectories(t *testing.T) {
	forEachStorage(t, func(t *testing.T, s storageUnderTest) {
		s.writeFile(t, "b/two.jsonl", "2\n")
		s.writeFile(t, "b/one.jsonl", "1\n")
		s.writeFile(t, "a.jsonl", "")
		require.NoError(t, s.Storage.(DirMaker).MkdirAll("c/d"))
		require.NoError(t, s.Storage.(DirMaker).MkdirAll("c/d"))
		require.NoError(t, s.Storage.(DirMaker).MkdirAll(""))

		items, err := s.List("")
		require.NoError(t, err)
		assert.Equal(t, []Item{{"a.jsonl", KindFile}, {"b", KindDir}, {"c", KindDir}}, items)
		items, err = s.List("b")
		require.NoError(t, err)
		assert.Equal(t, []Item{{"one.jsonl", KindFile}, {"two.jsonl", KindFile}}, items)
		items, err = s.List("c/d")
		require.NoError(t, err)
		assert.Empty(t, items)

		assert.Equal(t, KindDir, stat(t, s, "").Kind)
		assert.Equal(t, KindDir, stat(t, s, "c/d").Kind)
		assert.Equal(t, uint32(0o700), stat(t, s, "c/d").Mode)
		assert.NotEqual(t, stat(t, s, "c").Token, stat(t, s, "c/d").Token)
		for _, op := range []string{"Open", "Append", "Sync", "Writers"} {
			assert.ErrorIs(t, operations[op](s.Storage, "c/d"), ErrNotRegular, op)
		}
		_, err = s.Replace("c/d", stat(t, s, "c/d").Token, content("x"))
		assert.ErrorIs(t, err, ErrNotRegular)
		assert.ErrorIs(t, s.Storage.(DirMaker).MkdirAll("a.jsonl/x"), ErrNotRegular)

		s.remove(t, "b/one.jsonl")
		_, err = s.Stat("b/one.jsonl")
		assert.ErrorIs(t, err, fs.ErrNotExist)
	})
}

func TestStorageAppend(t *testing.T) {
	forEachStorage(t, func(t *testing.T, s storageUnderTest) {
		s.writeFile(t, "x.jsonl", "one\n")
		before := stat(t, s, "x.jsonl")
		pinned, err := s.Open("x.jsonl")
		require.NoError(t, err)
		defer pinned.Close()

		after, err := s.Append("x.jsonl", []byte("two\nthree\n"))
		require.NoError(t, err)
		assert.Equal(t, stat(t, s, "x.jsonl"), after)
		assert.NotEqual(t, before.Token, after.Token)
		assert.True(t, before.SameObject(after.Token))
		assert.Equal(t, int64(14), after.Size)
		assert.Equal(t, "one\ntwo\nthree\n", read(t, s, "x.jsonl"))
		now, err := pinned.Stat()
		require.NoError(t, err)
		assert.Equal(t, after, now, "growth shows in what was opened before")
		assert.Equal(t, "one\ntwo\nthree\n", readObject(t, pinned))

		unchanged, err := s.Append("x.jsonl", nil)
		require.NoError(t, err)
		assert.Equal(t, after, unchanged, "nothing appended, nothing changed")
		require.NoError(t, s.Sync("x.jsonl"))
		assert.Equal(t, after, stat(t, s, "x.jsonl"))
	})
}

func TestStorageReplace(t *testing.T) {
	forEachStorage(t, func(t *testing.T, s storageUnderTest) {
		made, err := s.Replace("x.jsonl", Token{}, content("one\n"))
		require.NoError(t, err)
		assert.Equal(t, stat(t, s, "x.jsonl"), made)
		assert.Equal(t, uint32(0o600), made.Mode)
		assert.Equal(t, "one\n", read(t, s, "x.jsonl"))

		called := false
		_, err = s.Replace("x.jsonl", Token{}, func(io.Writer) error { called = true; return nil })
		assert.ErrorIs(t, err, ErrStale)
		assert.ErrorIs(t, err, fs.ErrExist)
		assert.False(t, called, "work for nothing")

		_, err = s.Append("x.jsonl", []byte("two\n"))
		require.NoError(t, err)
		_, err = s.Replace("x.jsonl", made.Token, content("lost\n"))
		assert.ErrorIs(t, err, ErrStale)
		assert.NotErrorIs(t, err, fs.ErrExist)
		assert.Equal(t, "one\ntwo\n", read(t, s, "x.jsonl"))

		old := stat(t, s, "x.jsonl")
		st, err := s.Replace("x.jsonl", old.Token, content("three\n"))
		require.NoError(t, err)
		assert.False(t, st.SameObject(old.Token))
		assert.Equal(t, stat(t, s, "x.jsonl"), st)
		assert.Equal(t, "three\n", read(t, s, "x.jsonl"))

		s.remove(t, "x.jsonl")
		_, err = s.Replace("x.jsonl", st.Token, content("back\n"))
		assert.ErrorIs(t, err, ErrStale)
		assert.NotErrorIs(t, err, fs.ErrNotExist)
		st, err = s.Replace("empty.jsonl", Token{}, content(""))
		require.NoError(t, err)
		assert.Zero(t, st.Size)
	})
}

func TestStorageReplaceChangesNothingWhenItFails(t *testing.T) {
	failed := errors.New("the writer failed")
	forEachStorage(t, func(t *testing.T, s storageUnderTest) {
		s.writeFile(t, "x.jsonl", "one\n")
		before := stat(t, s, "x.jsonl")
		for _, name := range []string{"x.jsonl", "new.jsonl"} {
			expect := before.Token
			if name == "new.jsonl" {
				expect = Token{}
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
		assert.Equal(t, before, stat(t, s, "x.jsonl"))
		items, err := s.List("")
		require.NoError(t, err)
		assert.Equal(t, []Item{{"x.jsonl", KindFile}}, items)
	})
}

func TestStorageReplaceSeesWhatHappensMeanwhile(t *testing.T) {
	forEachStorage(t, func(t *testing.T, s storageUnderTest) {
		s.writeFile(t, "x.jsonl", "one\n")
		_, err := s.Replace("x.jsonl", stat(t, s, "x.jsonl").Token, func(w io.Writer) error {
			_, err := s.Append("x.jsonl", []byte("two\n"))
			return err
		})
		assert.ErrorIs(t, err, ErrStale)
		assert.Equal(t, "one\ntwo\n", read(t, s, "x.jsonl"))

		_, err = s.Replace("y.jsonl", Token{}, func(w io.Writer) error {
			s.writeFile(t, "y.jsonl", "theirs\n")
			return nil
		})
		assert.ErrorIs(t, err, fs.ErrExist)
		assert.Equal(t, "theirs\n", read(t, s, "y.jsonl"))
	})
}

func TestStoragePinsWhatWasOpened(t *testing.T) {
	forEachStorage(t, func(t *testing.T, s storageUnderTest) {
		s.writeFile(t, "x.jsonl", "one\n")
		first, err := s.Open("x.jsonl")
		require.NoError(t, err)
		st, err := s.Replace("x.jsonl", stat(t, s, "x.jsonl").Token, content("two\n"))
		require.NoError(t, err)
		_, err = s.Append("x.jsonl", []byte("more\n"))
		require.NoError(t, err)
		second, err := s.Open("x.jsonl")
		require.NoError(t, err)
		s.remove(t, "x.jsonl")

		assert.Equal(t, "one\n", readObject(t, first))
		assert.Equal(t, "two\nmore\n", readObject(t, second))
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
	forEachStorage(t, func(t *testing.T, s storageUnderTest) {
		s.writeFile(t, "x.jsonl", "")
		var inside atomic.Int32
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() {
				for i := range rounds {
					unlock, err := lockPatiently(s, "x.jsonl")
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
		assert.Equal(t, writers*rounds, strings.Count(read(t, s, "x.jsonl"), "\n"))
	})
}

// lockPatiently asks again where a machine under load took longer than the lock's limit.
func lockPatiently(s Storage, name string) (unlock func() error, err error) {
	for start := time.Now(); time.Since(start) < generous; {
		unlock, err = s.Lock(context.Background(), name)
		if !errors.Is(err, ErrLocked) {
			break
		}
	}
	return unlock, err
}

func TestStorageLockIsWaitedForSoLong(t *testing.T) {
	forEachStorage(t, func(t *testing.T, s storageUnderTest) {
		s.writeFile(t, "x.jsonl", "")
		unlock := lock(t, s, "x.jsonl")
		start := time.Now()
		_, err := s.Lock(t.Context(), "x.jsonl")
		assert.ErrorIs(t, err, ErrLocked)
		assert.GreaterOrEqual(t, time.Since(start), lockLimit)
		assert.Less(t, time.Since(start), generous)
		require.NoError(t, lock(t, s, "y.jsonl")(), "another file's lock is another")

		got := make(chan error, 1)
		go func() {
			again, err := lockPatiently(s, "x.jsonl")
			if err == nil {
				err = again()
			}
			got <- err
		}()
		require.NoError(t, unlock())
		require.NoError(t, <-got)
		assert.NoError(t, unlock(), "a second call does nothing")
		require.NoError(t, lock(t, s, "x.jsonl")())
	})
}

func TestStorageLockEndsWithItsContext(t *testing.T) {
	forEachStorage(t, func(t *testing.T, s storageUnderTest) {
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := s.Lock(cancelled, "x.jsonl")
		assert.ErrorIs(t, err, context.Canceled, "also of a lock that is free")

		unlock := lock(t, s, "x.jsonl")
		soon, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		_, err = s.Lock(soon, "x.jsonl")
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.NotErrorIs(t, err, ErrLocked)
		require.NoError(t, unlock())
	})
}

func TestEndsInNewline(t *testing.T) {
	forEachStorage(t, func(t *testing.T, s storageUnderTest) {
		for text, want := range map[string]bool{"": true, "\n": true, "x": false, "x\n": true, "x\ny": false} {
			s.writeFile(t, "x.jsonl", text)
			o, err := s.Open("x.jsonl")
			require.NoError(t, err)
			got, err := endsInNewline(o, int64(len(text)))
			require.NoError(t, err)
			assert.Equal(t, want, got, "%q", text)
			if text == "" {
				_, err = endsInNewline(o, 5)
				assert.ErrorIs(t, err, io.EOF, "shorter than it was said to be")
			}
			require.NoError(t, o.Close())
		}
	})
}

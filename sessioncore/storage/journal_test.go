package storage_test

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

	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
	"sessionfs/sessioncore/storage/storagetest/every"
)

// The second part of the contract: how session files are written (storage.Journal).

// TestJournalAppend: an append keeps the object, shows in files that are open, and changes nothing if it is empty.
func TestJournalAppend(t *testing.T) {
	every.Journals(t, func(t *testing.T, s every.Store) {
		s.WriteFile(t, "x.jsonl", "one\n")
		before := storagetest.Stat(t, s, "x.jsonl")
		pinned := storagetest.Open(t, s, "x.jsonl")

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

// TestJournalReplace: a file is replaced if it is the expected one, a new one comes with its directories.
func TestJournalReplace(t *testing.T) {
	every.Journals(t, func(t *testing.T, s every.Store) {
		made, err := storagetest.Replace(s, "x.jsonl", "one\n")
		require.NoError(t, err)
		assert.Equal(t, storagetest.Stat(t, s, "x.jsonl"), made)
		assert.Equal(t, uint32(0o600), made.Mode)
		assert.Equal(t, "one\n", storagetest.Read(t, s, "x.jsonl"))

		refused := func(expect storage.Token) error {
			_, err := s.Replace("x.jsonl", storage.Replacement{Expect: expect, Write: func(io.Writer) error {
				t.Error("it is refused before the content is written")
				return nil
			}})
			assert.ErrorIs(t, err, storage.ErrStale)
			return err
		}
		assert.ErrorIs(t, refused(storage.Token{}), fs.ErrExist)
		_, err = s.Append("x.jsonl", []byte("two\n"))
		require.NoError(t, err)
		assert.NotErrorIs(t, refused(made.Token), fs.ErrExist)
		assert.Equal(t, "one\ntwo\n", storagetest.Read(t, s, "x.jsonl"))

		old := storagetest.Stat(t, s, "x.jsonl")
		st, err := storagetest.Replace(s, "x.jsonl", "three\n")
		require.NoError(t, err)
		assert.False(t, st.SameObject(old.Token))
		assert.Equal(t, storagetest.Stat(t, s, "x.jsonl"), st)
		assert.Equal(t, "three\n", storagetest.Read(t, s, "x.jsonl"))

		s.Remove(t, "x.jsonl")
		assert.NotErrorIs(t, refused(st.Token), fs.ErrNotExist)
		at := time.Unix(1_700_000_000, 0)
		st, err = s.Replace("a/b/empty.jsonl", storage.Replacement{Write: storagetest.Content(""), Modified: at})
		require.NoError(t, err)
		assert.Zero(t, st.Size)
		assert.Equal(t, at, st.ModTime())
		assert.Equal(t, uint32(storage.DirMode), storagetest.Stat(t, s, "a/b").Mode, "with its directories")
	})
}

// TestJournalReplaceChangesNothingWhenItFails: after an error or a panic of the writer the file and its directory are as before.
func TestJournalReplaceChangesNothingWhenItFails(t *testing.T) {
	failed := errors.New("the writer failed")
	every.Journals(t, func(t *testing.T, s every.Store) {
		s.WriteFile(t, "x.jsonl", "one\n")
		before := storagetest.Stat(t, s, "x.jsonl")
		for name, expect := range map[string]storage.Token{"x.jsonl": before.Token, "new.jsonl": {}} {
			half := func(w io.Writer) error {
				_, _ = io.WriteString(w, strings.Repeat("half\n", 50_000)) // more than a buffer
				return failed
			}
			_, err := s.Replace(name, storage.Replacement{Expect: expect, Write: half})
			assert.ErrorIs(t, err, failed)
			panics := func(io.Writer) error { panic("in the writer") }
			assert.Panics(t, func() {
				_, _ = s.Replace(name, storage.Replacement{Expect: expect, Write: panics})
			})
		}
		assert.Equal(t, before, storagetest.Stat(t, s, "x.jsonl"))
		items, err := storage.List(s, "")
		require.NoError(t, err)
		assert.Equal(t, []storage.Item{{Name: "x.jsonl", Kind: storage.KindFile}}, items)
	})
}

// TestJournalReplaceSeesWhatHappensMeanwhile: a file that others write while the content is made is kept, and the replacement refused.
func TestJournalReplaceSeesWhatHappensMeanwhile(t *testing.T) {
	every.Journals(t, func(t *testing.T, s every.Store) {
		s.WriteFile(t, "x.jsonl", "one\n")
		expect := storagetest.Stat(t, s, "x.jsonl").Token
		for name, expect := range map[string]storage.Token{"x.jsonl": expect, "y.jsonl": {}} {
			_, err := s.Replace(name, storage.Replacement{Expect: expect, Write: func(io.Writer) error {
				s.WriteFile(t, name, "theirs\n")
				return nil
			}})
			assert.ErrorIs(t, err, storage.ErrStale)
			assert.Equal(t, name == "y.jsonl", errors.Is(err, fs.ErrExist))
			assert.Equal(t, "theirs\n", storagetest.Read(t, s, name))
		}
	})
}

// TestJournalReplaceWhenReady: lines that are added while the content is written are not lost, and an error of Ready forbids the
// replacement.
func TestJournalReplaceWhenReady(t *testing.T) {
	forbidden := errors.New("forbidden")
	every.Journals(t, func(t *testing.T, s every.Store) {
		s.WriteFile(t, "x.jsonl", "one\n")
		before := storagetest.Stat(t, s, "x.jsonl")
		replace := func(ready storage.Ready) (storage.Stat, error) {
			isWritten := false
			return s.Replace("x.jsonl", storage.Replacement{
				Expect: before.Token,
				Write: func(out io.Writer) error {
					isWritten = true
					return storagetest.Content("two\n")(out)
				},
				Ready: func(more io.Writer) (storage.Token, error) {
					assert.True(t, isWritten, "it comes last")
					return ready(more)
				},
			})
		}
		_, err := replace(func(io.Writer) (storage.Token, error) { return before.Token, forbidden })
		assert.ErrorIs(t, err, forbidden)
		assert.Equal(t, before, storagetest.Stat(t, s, "x.jsonl"))
		_, err = replace(func(io.Writer) (storage.Token, error) {
			_, err := s.Append("x.jsonl", []byte("more\n"))
			return before.Token, err
		})
		assert.ErrorIs(t, err, storage.ErrStale)
		assert.Equal(t, "one\nmore\n", storagetest.Read(t, s, "x.jsonl"))

		before = storagetest.Stat(t, s, "x.jsonl")
		after, err := replace(func(more io.Writer) (storage.Token, error) {
			now, err := s.Append("x.jsonl", []byte("three\n"))
			require.NoError(t, err)
			_, err = io.WriteString(more, "three\n")
			return now.Token, err
		})
		require.NoError(t, err)
		assert.Equal(t, storagetest.Stat(t, s, "x.jsonl"), after)
		assert.False(t, before.SameObject(after.Token))
		assert.Equal(t, "two\nthree\n", storagetest.Read(t, s, "x.jsonl"))
	})
}

// TestJournalReplaceHead: a file that gets another title slot stays the same file, so that an open one shows the slot.
func TestJournalReplaceHead(t *testing.T) {
	every.Journals(t, func(t *testing.T, s every.Store) {
		slot := func(title string) string { return string(names.TitleSlot(title, "user", "2026-02-16T10:20:30.000Z")) }
		s.WriteFile(t, "x.jsonl", slot("one")+"two\n")
		before := storagetest.Stat(t, s, "x.jsonl")
		pinned := storagetest.Open(t, s, "x.jsonl")
		tooLong := []byte(strings.Repeat("longer than the file is", 20))
		for _, tail := range []string{"", "three\n"} {
			after, err := s.Replace("x.jsonl", storage.Replacement{
				Expect: before.Token,
				Head:   []byte(slot("ONE")),
				Tail:   []byte(tail),
			})
			require.NoError(t, err)
			assert.Equal(t, storagetest.Stat(t, s, "x.jsonl"), after)
			assert.NotEqual(t, before.Token, after.Token)
			assert.True(t, before.SameObject(after.Token))
			want := slot("ONE") + "two\n" + tail
			assert.Equal(t, want, storagetest.Read(t, s, "x.jsonl"))
			assert.Equal(t, want, storagetest.ReadObject(t, pinned), "it is the file that was opened before")

			_, err = s.Replace("x.jsonl", storage.Replacement{Expect: before.Token, Head: []byte("lost")})
			assert.ErrorIs(t, err, storage.ErrStale)
			_, err = s.Replace("x.jsonl", storage.Replacement{Expect: after.Token, Head: tooLong})
			assert.ErrorIs(t, err, storage.ErrStale)
			assert.Equal(t, after, storagetest.Stat(t, s, "x.jsonl"))
			before = after
		}
	})
}

// TestJournalLockExcludesGoroutines: no two goroutines hold a lock together, and no append is lost.
func TestJournalLockExcludesGoroutines(t *testing.T) {
	const writers, rounds = 8, 50
	every.Journals(t, func(t *testing.T, s every.Store) {
		s.WriteFile(t, "x.jsonl", "")
		var inside atomic.Int32
		var all sync.WaitGroup
		for writer := range writers {
			all.Go(func() {
				for round := range rounds {
					unlock, err := storagetest.LockPatiently(s, "x.jsonl")
					if !assert.NoError(t, err) {
						return
					}
					assert.Equal(t, int32(1), inside.Add(1), "nobody else has the lock")
					line := fmt.Appendf(nil, "%d %d\n", writer, round)
					_, err = s.Append("x.jsonl", line)
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

// TestJournalLock: a lock is waited for so long, or until the context ends.
func TestJournalLock(t *testing.T) {
	every.Journals(t, func(t *testing.T, s every.Store) {
		s.WriteFile(t, "x.jsonl", "")
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := s.Lock(cancelled, "x.jsonl")
		assert.ErrorIs(t, err, context.Canceled, "also for a lock that is free")

		unlock := storagetest.Lock(t, s, "x.jsonl")
		start := time.Now()
		_, err = s.Lock(t.Context(), "x.jsonl")
		assert.ErrorIs(t, err, storage.ErrLocked)
		assert.GreaterOrEqual(t, time.Since(start), storage.LockLimit)
		assert.Less(t, time.Since(start), storagetest.Generous)
		soon, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		_, err = s.Lock(soon, "x.jsonl")
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.NotErrorIs(t, err, storage.ErrLocked)
		require.NoError(t, storagetest.Lock(t, s, "y.jsonl")(), "another file's lock is another")

		waiter := make(chan error, 1)
		go func() {
			unlock, err := storagetest.LockPatiently(s, "x.jsonl")
			if err == nil {
				err = unlock()
			}
			waiter <- err
		}()
		require.NoError(t, unlock())
		require.NoError(t, <-waiter)
		assert.NoError(t, unlock(), "a second call does nothing")
	})
}

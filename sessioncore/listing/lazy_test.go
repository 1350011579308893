package listing

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// uuid returns the nth id of a client.
func uuid(n int) string { return fmt.Sprintf("019c6f0e-%04x-7000-8000-%012x", n, n) }

// startOfNames begins the names of clients' files.
const startOfNames = "2026-03-01T00-00-00-000Z_"

// countedStore is a store of n sessions of a client, of which the last ones were modified last.
func countedStore(t *testing.T, n int) *countingStorage {
	files := &countingStorage{Storage: memory.New()}
	for i := range n {
		files.put(t, i, fmt.Sprintf("p%d/%s%s.jsonl", i%20, startOfNames, uuid(i)), headerLine(uuid(i), fmt.Sprintf("/w/%d", i%20)))
	}
	return files
}

// put writes a file with a modification time, in seconds after the first one of the tests.
func (c *countingStorage) put(t *testing.T, second int, name, text string) {
	require.NoError(t, c.WriteFile(name, []byte(text)))
	require.NoError(t, c.Chtimes(name, time.Unix(int64(1_700_000_000+second), 0)))
}

// firstIDs returns the ids of the first n sessions of a list.
func (l *Listing) firstIDs(t testing.TB, n int) (ids []string) {
	for info, err := range l.NewestFirst(t.Context()) {
		require.NoError(t, err)
		ids = append(ids, info.ID)
		if len(ids) == n {
			break
		}
	}
	return ids
}

// TestLazyWork: one session is found by the names, and the newest by their times: as many files are opened among some
// sessions as among twice as many.
func TestLazyWork(t *testing.T) {
	for _, n := range []int{1000, 2000} {
		files := countedStore(t, n)
		opens := func(ask func(l *Listing)) int64 {
			l := newListing(t, files)
			l.store.SetProgram(func(string) sessioncore.Program { return sessioncore.ByOMP })
			files.work()
			ask(l)
			return files.work().opens
		}
		name := fmt.Sprintf("p17/%s%s.jsonl", startOfNames, uuid(777))
		// opensToResume returns the number of files that are opened to find a session by a key.
		opensToResume := func(key, want string) int64 {
			return opens(func(l *Listing) { require.Equal(t, want, l.resume(t, key)) })
		}
		for what, key := range map[string]string{
			"id":         uuid(777),
			"upper case": strings.ToUpper(uuid(777)),
			"beginning":  uuid(777)[:13],
			"name":       path.Base(name)[:60],
		} {
			require.EqualValues(t, 1, opensToResume(key, name), what)
		}
		require.EqualValues(t, 1, opens(func(l *Listing) {
			s, err := l.sessionNamed(t.Context(), uuid(777), "")
			require.NoError(t, err)
			require.Equal(t, name, s.Name())
		}), "the parent")
		require.EqualValues(t, 1, opens(func(l *Listing) {
			dir, err := l.dirOf(t.Context(), strings.TrimSuffix(path.Base(name), ".jsonl"))
			require.NoError(t, err)
			require.Equal(t, "p17", dir)
		}), "a file that moved")
		require.EqualValues(t, n, opensToResume("no-such-id", ""), "all files are read before the answer no")
		require.Zero(t, opens(func(l *Listing) {
			l.SetNamed(func(string) bool { return true })
			require.Empty(t, l.resume(t, "no-such-id"))
		}), "unless names are ids")
		require.EqualValues(t, firstBatch, opens(func(l *Listing) {
			require.Equal(t, uuid(n-50), l.firstIDs(t, 50)[49])
		}), "the newest")
		const batches = firstBatch + 2*firstBatch // each is twice as long as the one before
		require.EqualValues(t, batches, opens(func(l *Listing) {
			ids := l.firstIDs(t, firstBatch+1)
			require.Len(t, ids, firstBatch+1)
		}), "more of them")
		require.EqualValues(t, 100, opens(func(l *Listing) {
			since := time.Unix(int64(1_700_000_000+n-100), 0) // of the last 100
			found, err := l.ModifiedSince(t.Context(), since.UnixNano())
			require.NoError(t, err)
			require.Len(t, found, 100)
		}), "since a time")
		for i := range 10 {
			files.put(t, 0, fmt.Sprintf("p0/by-hand-%d.jsonl", i), headerLine(uuid(5000+i), "/w"))
		}
		require.EqualValues(t, 11, opensToResume(uuid(777), name), "and those without an id in the name")
		require.EqualValues(t, 10, opensToResume(uuid(5003), "p0/by-hand-3.jsonl"))
	}
}

// TestIDInName: a file's name ends in an id of a known form, or has none.
func TestIDInName(t *testing.T) {
	for name, want := range map[string]string{
		uuid(1):                                  uuid(1),
		startOfNames + strings.ToUpper(uuid(1)):  uuid(1),
		"rollout-2026-08-03T09-00-00-" + uuid(1): uuid(1),
		startOfNames + "0197c0ffee00aa11":        "0197c0ffee00aa11",
		"session-2026-08-03T09-00-1a2b3c4d":      "1a2b3c4d",
		"x" + uuid(1):                            "",
		uuid(1) + ".1":                           "",
		uuid(1)[:35] + "g":                       "",
		strings.ReplaceAll(uuid(1), "-", "0"):    "",
		"my-own-name":                            "",
		"2026-03-01":                             "",
		"":                                       "",
	} {
		f := &sessionFile{dir: &sessionDir{}, name: "p/" + name + ".jsonl"}
		require.Equal(t, want, f.idByName(), name)
	}
}

// TestLazyIsTrue: a listing that has read nothing yet answers as one that has read all, also with copies, ids that begin alike,
// names without an id, and files with another id in the name than in the header, if no other file has that id.
func TestLazyIsTrue(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	rounds := 30
	if sessiontest.UnderRace {
		rounds = 3
	}
	for round := range rounds {
		files := &countingStorage{Storage: memory.New()}
		var keys []string
		for i := range 1 + rng.IntN(30) {
			id := uuid(rng.IntN(20))
			name := startOfNames + id
			switch rng.IntN(10) {
			case 0:
				name = fmt.Sprintf("copy-%d", i)
			case 1:
				name = "rollout-2026-08-03T09-00-00-" + id
			case 2:
				name = fmt.Sprintf("session-2026-%d-%s", i, id[:shortID])
			case 3:
				name = id
			case 4:
				id = fmt.Sprintf("%s-own-%d", id, i%3)
				name = startOfNames + id
			case 5:
				name = startOfNames + uuid(100+i) // its header has another id
				id = uuid(200 + i)
			case 6:
				name = startOfNames + uuid(100+i)
				id = fmt.Sprint("job-", i)
			case 7:
				name = fmt.Sprint("by-hand-", i)
				id = fmt.Sprint("job-", i)
			}
			text := headerLine(id, "/w")
			if rng.IntN(10) == 0 {
				text = "no session\n"
			}
			files.put(t, rng.IntN(9), fmt.Sprintf("p%d/%s.jsonl", rng.IntN(3), name), text)
			keys = append(keys, id, strings.ToUpper(id), id[:1+rng.IntN(len(id)-1)], name)
		}
		program := []sessioncore.Program{sessioncore.ByOMP, sessioncore.ByPi, sessioncore.ByUnknown}[round%3]
		listing := func() *Listing {
			l := newListing(t, files)
			l.store.SetProgram(func(string) sessioncore.Program { return program })
			return l
		}
		all := listing()
		known := all.all(t)
		for _, key := range keys {
			require.Equal(t, all.resume(t, key), listing().resume(t, key), "round %d: %s", round, key)
			want, err1 := all.Resuming(t.Context(), key, false)
			got, err2 := listing().Resuming(t.Context(), key, false)
			require.Equal(t, err1 == nil, err2 == nil)
			require.Equal(t, namesOf(want), namesOf(got), "round %d: %s", round, key)
		}
		lazy := listing()
		lazy.resume(t, keys[0])
		require.Equal(t, namesOf(known), namesOf(lazy.all(t)), "a list after a look at some")
		var newest []*Info
		for info, err := range listing().NewestFirst(t.Context()) {
			require.NoError(t, err)
			newest = append(newest, info)
		}
		require.Equal(t, namesOf(known), namesOf(newest), "round %d", round)
	}
}

// namesOf returns the names of the files of sessions.
func namesOf(infos []*Info) (names []string) {
	for _, i := range infos {
		names = append(names, i.Name())
	}
	return names
}

// TestNewestFirst: the order is that of the list, over several batches and of any agent, though messages of pi tell other times
// than the file. It ends with the context.
func TestNewestFirst(t *testing.T) {
	for _, program := range []sessioncore.Program{sessioncore.ByOMP, sessioncore.ByPi, sessioncore.ByUnknown} {
		files := &countingStorage{Storage: memory.New()}
		n := firstBatch * 5
		for i := range n {
			at := int64(1_700_000_000 + i*7%n*3600)
			said := fmt.Sprintf(`{"role":"user","content":"x","timestamp":%d}`, (at-int64(i*13%40)*3600)*1000)
			name := fmt.Sprintf("p%d/%s%s.jsonl", i%3, startOfNames, uuid(i/2)) // pairs share a name
			require.NoError(t, files.WriteFile(name, []byte(headerLine(uuid(i), "/")+sessiontest.MessageLine(0, said))))
			require.NoError(t, files.Chtimes(name, time.Unix(at-at%7200, 0)))
		}
		listing := func() *Listing {
			l := newListing(t, files)
			l.store.SetProgram(func(string) sessioncore.Program { return program })
			return l
		}
		want := ids(t, listing())
		l := listing()
		for range 2 { // also when they were looked at before
			require.Equal(t, want, strings.Join(l.firstIDs(t, n+1), " "))
		}
		files.work()
		listing().firstIDs(t, 50)
		require.Less(t, files.work().opens, int64(n), "program %d", program)
		for range 3 { // what grows comes first
			name := fmt.Sprintf("p%d/%s%s.jsonl", 0, startOfNames, uuid(0))
			_, err := files.Append(name, []byte("{}\n"))
			require.NoError(t, err)
			want = strings.Join(l.firstIDs(t, n+1), " ")
			require.Equal(t, ids(t, listing()), want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range newListing(t, memory.New()).NewestFirst(ctx) {
		require.ErrorIs(t, err, context.Canceled)
	}
}

// TestStaleFiles: a change that one look saw and did not read is read by the next one that needs it.
func TestStaleFiles(t *testing.T) {
	files := countedStore(t, 200)
	l := newListing(t, files)
	l.all(t)
	last := fmt.Sprintf("p0/%s%s.jsonl", startOfNames, uuid(0))
	files.put(t, -1, last, headerLine("renamed", "/elsewhere"))
	require.Len(t, l.firstIDs(t, 50), 50)
	require.Equal(t, last, l.resume(t, "renamed"))
	require.Equal(t, []string{"elsewhere/", "w/"}, cwdNames(t, l, "/"))
}

package postgres

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
)

// TestContentIsReadOnce: all readers of a row share one reading of it, and growth is read alone.
func TestContentIsReadOnce(t *testing.T) {
	table, s := openTable(t, Options{})
	body := lines(1000)
	table.Write(t, prefix+"a.jsonl", body)
	for range 3 {
		require.Equal(t, body, storagetest.Read(t, s, "a.jsonl"))
	}
	require.Equal(t, 1, s.sent.count(s.sql.heads), "its beginning, which is read first")
	require.Equal(t, 1, s.sent.count(s.sql.rest))

	o := storagetest.Open(t, s, "a.jsonl")
	table.Append(t, prefix+"a.jsonl", "grown\n")
	require.Equal(t, body+"grown\n", storagetest.ReadObject(t, o))
	require.Equal(t, body+"grown\n", storagetest.Read(t, s, "a.jsonl"))
	require.Equal(t, 1, s.sent.count(s.sql.rest))
	require.Zero(t, s.sent.count(s.sql.heads))

	_, err := s.Append("a.jsonl", []byte("by us\n"))
	require.NoError(t, err)
	require.Equal(t, body+"grown\nby us\n", storagetest.Read(t, s, "a.jsonl"))
	require.Zero(t, s.sent.count(s.sql.rest), "what was written is known")
}

// TestContentOfAnother: a row that was written anew is another object, even if it is as long as before or longer, and the
// old one stays what it was or is stale; never is one shown for the other.
func TestContentOfAnother(t *testing.T) {
	for what, change := range map[string]func(string) string{
		"same size": func(b string) string { return strings.ToUpper(b) },
		"longer":    func(b string) string { return "X" + b },
		"shorter":   func(b string) string { return b[:len(b)/2] },
		"in its middle": func(b string) string {
			return b[:len(b)/2] + "X" + b[len(b)/2+1:] + "and longer\n"
		},
	} {
		t.Run(what, func(t *testing.T) {
			table, s := openTable(t, Options{})
			for _, n := range []int{10, 1000} {
				body := lines(n)
				table.Write(t, prefix+"a.jsonl", body)
				o := storagetest.Open(t, s, "a.jsonl")
				require.Equal(t, body, storagetest.ReadObject(t, o))
				before := storagetest.Stat(t, s, "a.jsonl")

				table.Write(t, prefix+"a.jsonl", change(body))
				require.Equal(t, change(body), storagetest.Read(t, s, "a.jsonl"))
				require.False(t, storagetest.Stat(t, s, "a.jsonl").SameObject(before.Token))
				require.Equal(t, body, storagetest.ReadObject(t, o))
				require.NoError(t, o.Close())
				table.Remove(t, prefix+"a.jsonl")
			}
		})
	}
}

// TestTitleColumns: the title in the columns lies over the slot, as the client reads it, and over nothing else.
func TestTitleColumns(t *testing.T) {
	const at = "2026-02-16T10:20:30.000Z"
	table, s := openTable(t, Options{})
	slot := string(title{ptr("old"), ptr("auto"), ptr(at)}.line())
	table.Write(t, prefix+"a.jsonl", slot+"body\n")
	o := storagetest.Open(t, s, "a.jsonl")
	require.Equal(t, slot+"body\n", storagetest.ReadObject(t, o))
	before := storagetest.Stat(t, s, "a.jsonl")

	table.Do(t, `UPDATE `+table.Name+` SET title = 'new', title_source = 'user', title_updated_at = $1, mtime_ms = mtime_ms + 1`, at)
	shown := string(title{ptr("new"), ptr("user"), ptr(at)}.line()) + "body\n"
	require.Equal(t, shown, storagetest.Read(t, s, "a.jsonl"))
	require.Equal(t, shown, storagetest.ReadObject(t, o), "as with a file, it is the one that was opened")
	after := storagetest.Stat(t, s, "a.jsonl")
	require.True(t, before.SameObject(after.Token))
	require.NotEqual(t, before.Token, after.Token)
	part := make([]byte, 40)
	_, err := o.ReadAt(part, 240)
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, shown[240:], string(part[:len(shown)-240]))

	table.Write(t, prefix+"b.jsonl", lines(9))
	table.Do(t, `UPDATE `+table.Name+` SET title = 'new', title_source = 'user', title_updated_at = $1, mtime_ms = mtime_ms + 1`, at)
	require.Equal(t, lines(9), storagetest.Read(t, s, "b.jsonl"), "a body without a slot is not damaged")
}

// TestContentIsBounded: what is kept is a part of the budget, what was taken away is read again, and what is long is kept in a
// file without a name.
func TestContentIsBounded(t *testing.T) {
	memory := budget.New(budget.Min) // of which 3.6 MB are for what is kept
	temporary := t.TempDir()
	table, s := openTable(t, Options{Memory: memory, Temporary: temporary})
	small := lines(10_000)
	names := []string{"a", "b", "c", "d", "e", "f"}
	for _, name := range names {
		table.Write(t, prefix+name, name+small)
	}
	for range 2 {
		for _, name := range names {
			require.Equal(t, name+small, storagetest.Read(t, s, name))
			require.LessOrEqual(t, memory.Held(), memory.Limit()/4)
		}
	}
	require.Equal(t, 12, s.sent.count(s.sql.rest))
	require.Zero(t, s.kept.files.Len())

	large := lines(200_000)
	table.Write(t, prefix+"large", large)
	o := storagetest.Open(t, s, "large")
	part := make([]byte, headSize)
	require.NoError(t, storage.ReadFull(o, part, 0))
	require.Equal(t, large[:headSize], string(part))
	require.Zero(t, s.sent.count(s.sql.rest), "who reads no more is given no more")
	require.Equal(t, large, storagetest.ReadObject(t, o))
	require.Equal(t, 1, s.kept.files.Len())
	table.Append(t, prefix+"large", "more\n")
	require.Equal(t, large+"more\n", storagetest.ReadObject(t, o))
	_, err := s.Append("large", []byte("ours\n"))
	require.NoError(t, err)
	require.Equal(t, large+"more\nours\n", storagetest.ReadObject(t, o))
	require.Equal(t, 2, s.sent.count(s.sql.rest))
	require.LessOrEqual(t, memory.Held(), memory.Limit()/4)
	table.Write(t, prefix+"large", strings.ToUpper(large)+"and longer\n")
	require.Equal(t, strings.ToUpper(large)+"and longer\n", storagetest.Read(t, s, "large"))
	require.Equal(t, large+"more\nours\n", storagetest.ReadObject(t, o), "what was opened")
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestEvicted: what is open moves to a file, and goes on there; what is not is read again, and is another object if it has changed
// since.
func TestEvicted(t *testing.T) {
	for _, before := range []string{lines(10), lines(5000)} {
		table, s := openTable(t, Options{Temporary: t.TempDir()})
		evict := func(from *rowContents) {
			s.kept.mu.Lock()
			defer s.kept.mu.Unlock()
			require.True(t, s.kept.evict(from))
			require.Zero(t, from.Len())
		}
		table.Write(t, prefix+"a", before)
		o := storagetest.Open(t, s, "a")
		for _, more := range []string{"", "", "more\n", "again\n"} {
			table.Append(t, prefix+"a", more)
			before += more
			s.ReadAhead([]string{"a", "b"}) // as who lists it does
			require.Equal(t, before, storagetest.ReadObject(t, o))
			if s.kept.memory.Len() > 0 {
				evict(s.kept.memory)
			}
		}
		require.Equal(t, 1, s.kept.files.Len())
		evict(s.kept.files)
		require.Equal(t, before, storagetest.ReadObject(t, o))
		evict(s.kept.memory)
		evict(s.kept.files)
		was := storagetest.Stat(t, s, "a")
		table.Write(t, prefix+"a", strings.ToUpper(before)+"and more than before\n")
		_, err := o.ReadAt(make([]byte, 10), 0)
		require.ErrorIs(t, err, storage.ErrStale)
		require.NoError(t, o.Close())
		require.Equal(t, strings.ToUpper(before)+"and more than before\n", storagetest.Read(t, s, "a"))
		require.False(t, storagetest.Stat(t, s, "a").SameObject(was.Token))
		evict(s.kept.memory)
		require.Zero(t, s.kept.files.Len())
		require.Equal(t, strings.ToUpper(before)+"and more than before\n", storagetest.Read(t, s, "a"))
	}
}

// TestNameOfGrowingRow: the name of a row, for an error, can be read while a look stores its new facts. The race detector sees
// more than the test.
func TestNameOfGrowingRow(t *testing.T) {
	_, s := openTable(t, Options{Fresh: time.Hour})
	put := func(size int64) *row {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.put(rowFacts{path: prefix + "a.jsonl", version: fmt.Sprint(size), size: size}, s.clock)
		return s.rows[prefix+"a.jsonl"]
	}
	r := put(0)
	var looks sync.WaitGroup
	looks.Go(func() {
		for size := range int64(1000) {
			put(size)
		}
	})
	for range 1000 {
		require.Equal(t, "a.jsonl", r.content.name())
	}
	looks.Wait()
}

// TestReadAheadOfNames: rows that are announced are read by few statements, in any order, and have the same texts, also
// where characters of several bytes are cut, and where rows are too long to be unpacked as a whole.
func TestReadAheadOfNames(t *testing.T) {
	const rows = 3000
	table, s := openTable(t, Options{Fresh: time.Hour})
	table.Do(t, `INSERT INTO `+table.Name+
		` SELECT $1 || 'd' || n % 7 || '/' || n, repeat('é' || n || `+
		`E'\n', CASE n % 100 WHEN 99 THEN 20000 ELSE n END), n FROM generate_series(0, $2) n`, prefix, rows-1)
	want := func(n int) string {
		if n%100 == 99 {
			return strings.Repeat(fmt.Sprintf("é%d\n", n), 20000)
		}
		return strings.Repeat(fmt.Sprintf("é%d\n", n), n)
	}
	name := func(n int) string { return fmt.Sprintf("d%d/%d", n%7, n) }
	require.Greater(t, len(want(99)), unpackedWhole)
	storagetest.Stat(t, s, "")
	require.NoError(t, s.lookNow(t.Context()))
	names := []string{"none", "", "d1"}
	for _, n := range rand.Perm(rows) {
		names = append(names, name(n))
	}
	s.ReadAhead(names)
	require.Equal(t, 3, s.sent.count(s.sql.heads))
	for n := range rows {
		o := storagetest.Open(t, s, name(n))
		part := make([]byte, min(headSize, len(want(n))))
		require.NoError(t, storage.ReadFull(o, part, 0))
		require.Equal(t, want(n)[:len(part)], string(part))
		require.NoError(t, o.Close())
	}
	require.Zero(t, s.sent.count(s.sql.heads)+s.sent.count(s.sql.rest))
	for _, n := range []int{99, 2500, 2999} {
		require.Equal(t, want(n), storagetest.Read(t, s, name(n)))
	}
}

package postgres

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage/storagetest"
)

// TestReadAhead: rows that are opened in the order of their paths take few statements, by several readers too, and are what
// they are; what was read ahead is not shown where it changed meanwhile.
func TestReadAhead(t *testing.T) {
	const rows = 1000
	table, s := openTable(t, Options{Fresh: 20 * time.Millisecond})
	table.Do(t, `INSERT INTO `+table.Name+` SELECT $1 || 'd' || n / 100 || '/' || to_char(n, 'FM0000'), repeat('é' || n || E'\n', n * 5), n FROM generate_series(0, $2) n`, prefix, rows-1)
	want := func(n int) string { return strings.Repeat(fmt.Sprintf("é%d\n", n), n*5) }
	name := func(n int) string { return fmt.Sprintf("d%d/%04d", n/100, n) }
	require.Len(t, storagetest.Read(t, s, name(7)), len(want(7)))
	s.sent.count(s.sql.heads)
	s.sent.count(s.sql.head)
	s.sent.count(s.sql.all)

	var readers sync.WaitGroup
	next := make(chan int)
	for range 8 {
		readers.Go(func() {
			for n := range next {
				o, err := s.Open(name(n))
				if !assert.NoError(t, err) {
					continue
				}
				part := make([]byte, min(4096, len(want(n))))
				_, err = o.ReadAt(part, 0)
				assert.NoError(t, err)
				assert.Equal(t, want(n)[:len(part)], string(part))
				assert.NoError(t, o.Close())
			}
		})
	}
	for n := range rows {
		next <- n
		if n == rows/2 {
			table.Write(t, prefix+name(n+50), want(n + 50)[3:])
			table.Append(t, prefix+name(n+60), "more")
			table.Write(t, prefix+name(n+50), want(n+50))
			table.Remove(t, prefix+name(0))
		}
	}
	close(next)
	readers.Wait()
	s.opts.Fresh = 0
	several, alone := s.sent.count(s.sql.heads), s.sent.count(s.sql.head)+s.sent.count(s.sql.all)
	require.LessOrEqual(t, several, rows/10)
	require.LessOrEqual(t, alone, rows/2, "a reader may be far behind the others")
	for _, n := range []int{1, 499, 555, 999} {
		require.Equal(t, want(n), storagetest.Read(t, s, name(n)))
	}
	require.Equal(t, want(560)+"more", storagetest.Read(t, s, name(560)))
}

// TestNoReadAhead: who opens rows here and there gets them alone.
func TestNoReadAhead(t *testing.T) {
	table, s := openTable(t, Options{})
	table.Do(t, `INSERT INTO `+table.Name+` SELECT $1 || to_char(n, 'FM0000'), 'x', n FROM generate_series(0, 999) n`, prefix)
	for n := range 10 {
		require.Equal(t, "x", storagetest.Read(t, s, fmt.Sprintf("%04d", n*97%1000)))
	}
	require.Zero(t, s.sent.count(s.sql.heads))
}

// TestReadAheadOfNames: rows that are announced are read by few statements, whatever their order, and are what they are, also
// where characters of several bytes are cut, and where rows are too long to be unpacked as a whole.
func TestReadAheadOfNames(t *testing.T) {
	const rows = 3000
	table, s := openTable(t, Options{Fresh: time.Hour})
	table.Do(t, `INSERT INTO `+table.Name+` SELECT $1 || 'd' || n % 7 || '/' || n, repeat('é' || n || E'\n', CASE n % 100 WHEN 99 THEN 20000 ELSE n END), n FROM generate_series(0, $2) n`, prefix, rows-1)
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
	for _, n := range rand.New(rand.NewPCG(1, 2)).Perm(rows) {
		names = append(names, name(n))
	}
	s.ReadAhead(names)
	require.Equal(t, 3, s.sent.count(s.sql.heads))
	for n := range rows {
		o, err := s.Open(name(n))
		require.NoError(t, err)
		part := make([]byte, min(headSize, len(want(n))))
		_, err = o.ReadAt(part, 0)
		require.NoError(t, err)
		require.Equal(t, want(n)[:len(part)], string(part))
		require.NoError(t, o.Close())
	}
	for _, sql := range []string{s.sql.heads, s.sql.head, s.sql.all, s.sql.rest, s.sql.window} {
		require.Zero(t, s.sent.count(sql))
	}
	for _, n := range []int{99, 2500, 2999} {
		require.Equal(t, want(n), storagetest.Read(t, s, name(n)))
	}
}

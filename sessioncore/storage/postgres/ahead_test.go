package postgres

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage/storagetest"
)

// TestReadAheadOfNames: rows that are announced are read by few statements, whatever their order, and are what they are, also
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
	require.Zero(t, s.sent.count(s.sql.heads)+s.sent.count(s.sql.rest))
	for _, n := range []int{99, 2500, 2999} {
		require.Equal(t, want(n), storagetest.Read(t, s, name(n)))
	}
}

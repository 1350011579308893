package postgres

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage/postgres/postgrestest"
	"sessionfs/sessioncore/storage/storagetest"
)

// neverLooks makes a storage look at the table only when it is told of a change.
var neverLooks = Options{Fresh: 24 * time.Hour}

// installTrigger does what an administrator does with the output of sessionfs sql-trigger.
func installTrigger(t *testing.T, table *postgrestest.Table) {
	src, err := ParseSource(table.Source(""))
	require.NoError(t, err)
	table.Do(t, src.Trigger())
}

// shows waits until a row has a size, -1 for none.
func shows(t *testing.T, s opened, name string, size int64) {
	t.Helper()
	require.Eventually(t, func() bool {
		st, err := s.Stat(name)
		return err == nil && st.Size == size || err != nil && size < 0
	}, storagetest.Generous, 5*time.Millisecond)
}

// TestListen: with the trigger what others do shows without a look at the table, and what the storage itself does makes none.
func TestListen(t *testing.T) {
	table := postgrestest.Shared(t).NewTable(t)
	installTrigger(t, table)
	installTrigger(t, table) // a second time changes nothing
	s := open(t, table.Source("&prefix="+prefix), neverLooks)
	table.Write(t, prefix+"a", "one\n")
	shows(t, s, "a", 4)
	table.Append(t, prefix+"a", "two\n")
	shows(t, s, "a", 8)
	told := s.listener.told.Load()
	_, err := s.Append("a", []byte("ours\n"))
	require.NoError(t, err)
	table.Remove(t, prefix+"a")
	shows(t, s, "a", -1)
	require.Equal(t, told+1, s.listener.told.Load(), "what was written here is not told")
	table.Write(t, prefix+"b", "one\n")
	shows(t, s, "b", 4)
	table.Do(t, `TRUNCATE `+table.Name)
	shows(t, s, "b", -1)
}

// TestListenAgain: a connection that breaks is made anew, and what changed meanwhile shows.
func TestListenAgain(t *testing.T) {
	table := postgrestest.Shared(t).NewTable(t)
	installTrigger(t, table)
	s := open(t, table.Source("&prefix="+prefix), neverLooks)
	for n := range 2 {
		table.Write(t, prefix+"a", lines(n+1))
		shows(t, s, "a", int64(len(lines(n+1))))
		require.Eventually(t, func() bool { // it may not listen again yet
			var ended int
			err := table.QueryRow(context.Background(), `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
				WHERE query = (SELECT 'LISTEN "sessionfs_' || $1::text::regclass::oid || '"')`, table.Name).Scan(&ended)
			return err == nil && ended == 1
		}, storagetest.Generous, 5*time.Millisecond)
	}
	table.Write(t, prefix+"a", "the last\n")
	shows(t, s, "a", 9)
}

// TestListenLater: without the trigger nothing is told; one that is installed later is found, and listened to once.
func TestListenLater(t *testing.T) {
	table, s := openTable(t, neverLooks)
	table.Write(t, prefix+"a", "one\n")
	_, err := s.Stat("a")
	require.ErrorIs(t, err, fs.ErrNotExist)
	installTrigger(t, table)
	for range 2 {
		require.NoError(t, s.lookNow(t.Context()))
	}
	shows(t, s, "a", 4)
	table.Write(t, prefix+"b", "one\n")
	shows(t, s, "b", 4)
	listeners := func() (n int) {
		require.NoError(t, table.QueryRow(context.Background(), `SELECT count(*) FROM pg_stat_activity
			WHERE query = (SELECT 'LISTEN "sessionfs_' || $1::text::regclass::oid || '"')`, table.Name).Scan(&n))
		return n
	}
	require.Equal(t, 1, listeners())
	s.Close()
	require.Eventually(t, func() bool { return listeners() == 0 }, storagetest.Generous, 5*time.Millisecond)
}

// TestTriggerOfOthers: a trigger tells of no other table, and hinders no write of a user who may do nothing else.
func TestTriggerOfOthers(t *testing.T) {
	server := postgrestest.Shared(t)
	table, other := server.NewTable(t), server.NewTable(t)
	installTrigger(t, table)
	installTrigger(t, other)
	s := open(t, table.Source("&prefix="+prefix), neverLooks)
	table.Write(t, prefix+"a", "one\n")
	shows(t, s, "a", 4)
	told := s.listener.told.Load()
	other.Write(t, prefix+"a", "one\n")
	role := fmt.Sprintf("writer%d", time.Now().UnixNano())
	table.Do(t, `CREATE ROLE `+role+` LOGIN; GRANT USAGE ON SCHEMA `+strings.Split(table.Name, ".")[0]+` TO `+role+`; GRANT SELECT, INSERT, UPDATE ON `+table.Name+` TO `+role)
	tx, err := table.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SET LOCAL ROLE `+role+`; SET LOCAL search_path = nowhere; UPDATE `+table.Name+` SET content = content || 'more'`)
	require.NoError(t, err)
	require.NoError(t, tx.Commit(t.Context()))
	shows(t, s, "a", 8)
	require.Equal(t, told+1, s.listener.told.Load())
}

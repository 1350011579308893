package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage/postgres/postgrestest"
	"sessionfs/sessioncore/storage/storagetest"
)

// installTrigger does what an administrator does with the output of sessionfs sql-trigger.
func installTrigger(t *testing.T, table *postgrestest.Table) {
	src, err := ParseSource(table.Source(""))
	require.NoError(t, err)
	table.Script(t, src.Trigger())
}

// tableOfChanges returns the name of the table in which changes of another one are noted.
func tableOfChanges(table *postgrestest.Table) string {
	return strings.Split(table.Name, ".")[0] + "." + changesTable
}

// shown returns the sizes of the rows that a storage shows, by path.
func shown(s opened) map[string]int64 {
	s.refresh()
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := map[string]int64{}
	for path, r := range s.rows {
		all[path] = r.size
	}
	return all
}

// inTable returns the sizes of the rows in a table, by path.
func inTable(t *testing.T, table *postgrestest.Table) map[string]int64 {
	rows, err := table.Query(t.Context(), `SELECT path, octet_length(content)::bigint FROM `+table.Name)
	require.NoError(t, err)
	all := map[string]int64{}
	var path string
	var size int64
	_, err = pgx.ForEachRow(rows, []any{&path, &size}, func() error { all[path] = size; return nil })
	require.NoError(t, err)
	return all
}

// TestNotedAlways: clients change, rename and remove rows in slow transactions of several parts, some of which are rolled back.
// Meanwhile the trigger is disabled for a while, and the table truncated. In the end the storage shows the rows of the table.
func TestNotedAlways(t *testing.T) {
	const clients, each, names = 4, 150, 12
	table := postgrestest.Shared(t).NewTable(t)
	installTrigger(t, table)
	s := open(t, table.Source("&prefix="+prefix), Options{Fresh: time.Nanosecond})
	change := func(random *rand.Rand, tx pgx.Tx) error {
		path := func() string { return fmt.Sprint(prefix, random.IntN(names)) }
		sql, args := `INSERT INTO `+table.Name+
			` AS t VALUES ($1, $2, 1) ON CONFLICT (path) DO UPDATE SET content = t.content || excluded.content`, []any{path(), lines(random.IntN(90))}
		switch random.IntN(8) {
		case 0:
			sql, args = `UPDATE `+table.Name+` SET path = $2 WHERE path = $1`, []any{path(), path()}
		case 1:
			sql, args = `DELETE FROM `+table.Name+` WHERE path = $1`, []any{path()}
		}
		_, err := tx.Exec(t.Context(), sql, args...)
		return err
	}
	transaction := func(random *rand.Rand, tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `SET LOCAL deadlock_timeout = '5ms'`); err != nil {
			return err
		}
		for range 1 + random.IntN(2) {
			_ = pgx.BeginFunc(t.Context(), tx, func(part pgx.Tx) error { // a savepoint
				if err := change(random, part); err != nil || random.IntN(5) > 0 {
					return err
				}
				return pgx.ErrTxCommitRollback
			})
			time.Sleep(time.Duration(random.IntN(2000)) * time.Microsecond)
		}
		return change(random, tx)
	}
	var all sync.WaitGroup
	for n := range clients {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(n), 1))
			for i := range each {
				_ = pgx.BeginFunc(t.Context(), table, func(tx pgx.Tx) error { return transaction(random, tx) }) // deadlocks, and names that are taken
				if n == 0 && i%50 == 25 {
					table.Do(t, `ALTER TABLE `+table.Name+` DISABLE TRIGGER USER`)
					table.Append(t, prefix+"0", "not noted\n")
					table.Do(t, `ALTER TABLE `+table.Name+` ENABLE ALWAYS TRIGGER `+triggerName+`, ENABLE TRIGGER sessionfs_truncated`)
				}
				if n == 1 && i == each/2 {
					table.Do(t, `TRUNCATE `+table.Name)
				}
			}
		})
	}
	under, over := context.WithCancel(t.Context())
	go func() { all.Wait(); over() }()
	for under.Err() == nil {
		for path := range shown(s) {
			if o, err := s.Open(strings.TrimPrefix(path, prefix)); err == nil {
				_, _ = o.ReadAt(make([]byte, 10), 0)
				assert.NoError(t, o.Close())
			}
		}
	}
	setFresh(s, 0)
	want := inTable(t, table)
	require.NotEmpty(t, want)
	require.Equal(t, want, shown(s))
	for path := range want {
		require.Equal(t, table.Content(t, path), storagetest.Read(t, s, strings.TrimPrefix(path, prefix)))
	}
}

// TestNotedHeads: a read ahead uses the noted beginnings of rows, but not those of rows that were changed without the trigger.
func TestNotedHeads(t *testing.T) {
	table := postgrestest.Shared(t).NewTable(t)
	body := strings.Repeat("é日本\n", 3000)
	for _, path := range []string{"old", "in part", "unnoticed", "short"} {
		table.Write(t, prefix+path, path+body)
	}
	installTrigger(t, table)
	table.Write(t, prefix+"short", "short")
	table.Append(t, prefix+"old", "more\n")
	table.Do(t, `DO $$ BEGIN BEGIN UPDATE `+table.Name+
		` SET content = 'IN PART' || content WHERE path LIKE '%/in part'; EXCEPTION WHEN OTHERS THEN RAISE; END; END $$`)
	table.Do(t, `ALTER TABLE `+table.Name+` DISABLE TRIGGER USER`)
	table.Do(t, `UPDATE `+table.Name+` SET content = 'UNNOTICED' || content WHERE path LIKE '%/unnoticed'`)
	table.Do(t, `ALTER TABLE `+table.Name+` ENABLE TRIGGER USER`)
	s := open(t, table.Source("&prefix="+prefix), Options{})
	names := []string{"old", "in part", "unnoticed", "short"}
	s.ReadAhead(names)
	require.Equal(t, 1, s.sent.count(s.sql.notedHeads))
	for _, name := range names {
		require.Equal(t, table.Content(t, prefix+name), storagetest.Read(t, s, name))
	}
	var noted int
	require.NoError(t, table.QueryRow(t.Context(),
		`SELECT count(*) FROM `+tableOfChanges(table)+` c JOIN `+table.Name+` t USING (path) WHERE t.xmin = c.version`).Scan(&noted))
	require.Equal(t, 2, noted)
}

// TestNotedLater: a trigger that is installed later is found, and one that is gone, disabled or without its table is missed, with
// what changed meanwhile.
func TestNotedLater(t *testing.T) {
	table, s := openTable(t, Options{})
	check := func(what string, noted bool) {
		t.Helper()
		table.Append(t, prefix+"a", "more\n")
		table.Remove(t, prefix+"b")
		require.Equal(t, inTable(t, table), shown(s), what)
		require.Equal(t, noted, s.look.noted.Load(), what)
		table.Write(t, prefix+"b", "")
		require.Equal(t, inTable(t, table), shown(s), what)
	}
	check("none", false)
	installTrigger(t, table)
	check("installed", true)
	table.Do(t, `ALTER TABLE `+table.Name+` DISABLE TRIGGER `+triggerName)
	check("disabled", false)
	table.Do(t, `ALTER TABLE `+table.Name+` ENABLE TRIGGER `+triggerName)
	check("enabled", true)
	table.Do(t, `DROP TABLE `+tableOfChanges(table))
	check("without its table", false)
	installTrigger(t, table)
	check("installed again", true)
	table.Do(t, `DROP TRIGGER `+triggerName+` ON `+table.Name)
	check("dropped", false)
}

// TestTriggerOfOthers: the trigger hinders no write of a user who may do nothing else, and is not led to another table.
func TestTriggerOfOthers(t *testing.T) {
	table := postgrestest.Shared(t).NewTable(t)
	writer, reader := newRole(t, table, "writer", "SELECT, INSERT, UPDATE"), newRole(t, table, "reader", "SELECT")
	installTrigger(t, table)
	late := newRole(t, table, "late", "SELECT")
	table.Write(t, prefix+"a", "one\n")
	s := openAs(t, table, reader, Options{})
	require.True(t, s.look.noted.Load(), "who may read the one table may read the other")
	require.False(t, openAs(t, table, late, Options{}).look.noted.Load())
	tx := table.Hold(t, `SET LOCAL ROLE `+writer+`; SET LOCAL search_path = pg_temp;
		CREATE TEMP TABLE sessionfs_changes (no int) ON COMMIT DROP; UPDATE `+table.Name+` SET content = content || 'more'`)
	require.NoError(t, tx.Commit(t.Context()))
	require.Equal(t, int64(8), storagetest.Stat(t, s, "a").Size)
	require.Zero(t, s.sent.count(s.sql.changed)-1)

	other := postgrestest.Shared(t).NewTable(t)
	other.Do(t, `CREATE TABLE `+tableOfChanges(other)+` (LIKE `+tableOfChanges(table)+`); ALTER TABLE `+tableOfChanges(other)+` OWNER TO `+writer)
	src, err := ParseSource(other.Source(""))
	require.NoError(t, err)
	require.ErrorContains(t, other.Psql(src.Trigger()), "is a table of somebody else")
	other.Write(t, prefix+"a", "nothing is installed")
	var noted int
	require.NoError(t, other.QueryRow(t.Context(), `SELECT count(*) FROM `+tableOfChanges(other)).Scan(&noted))
	require.Zero(t, noted)
}

package postgres

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/postgres/postgrestest"
	"sessionfs/sessioncore/storage/storagetest"
)

// TestRoundTrips: an append under a lock takes two round trips, of the lock and of the write with its commit. A look takes one.
func TestRoundTrips(t *testing.T) {
	table := postgrestest.Shared(t).NewTable(t)
	table.Write(t, prefix+"a", "")
	var l line
	s := openThrough(t, table, &l, Options{Fresh: time.Hour})
	look := func() { require.NoError(t, s.lookNow(t.Context())) }
	for n := range 5 {
		trips := l.count(func() {
			unlock := storagetest.Lock(t, s, "a")
			_, err := s.Append("a", []byte("line\n"))
			require.NoError(t, err)
			require.NoError(t, unlock())
		})
		require.True(t, n == 0 || trips == 2, "%d: but for the first time, it knows the statements", trips)
	}
	require.Equal(t, 2, l.count(func() { require.NoError(t, storagetest.Lock(t, s, "a")()) }), "nothing is written, and the lock given back")
	look()
	require.Equal(t, 1, l.count(look))
}

// TestConnections: a mount has few connections, also while readers and writers wait for each other, and closes idle ones.
func TestConnections(t *testing.T) {
	table := postgrestest.Shared(t).NewTable(t)
	name := fmt.Sprint("many", time.Now().UnixNano())
	src, err := ParseSource(table.Source("&application_name=" + name + "&prefix=" + prefix))
	require.NoError(t, err)
	s := openSource(t, src, Options{})
	require.LessOrEqual(t, s.pool.Config().MaxConnIdleTime+s.pool.Config().HealthCheckPeriod, unused)
	var all sync.WaitGroup
	for n := range 12 {
		table.Write(t, prefix+fmt.Sprint(n), lines(500))
		all.Go(func() {
			for range 5 {
				unlock, err := storagetest.LockPatiently(s, fmt.Sprint(n))
				if !assert.NoError(t, err) {
					return
				}
				o, err := s.Open(fmt.Sprint(n)) // needs another connection
				if assert.NoError(t, err) {
					_, err = o.ReadAt(make([]byte, 10_000), 0)
					assert.NoError(t, err)
				}
				_, err = s.Append(fmt.Sprint(n), []byte("x\n"))
				assert.NoError(t, err)
				assert.NoError(t, unlock())
			}
		})
	}
	all.Wait()
	var most int
	require.NoError(t, table.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE application_name = $1`, name).Scan(&most))
	require.LessOrEqual(t, most, connections)
}

// TestPooler: behind PgBouncer, where statements that a connection prepares or sets may be another one's, all is as without it.
func TestPooler(t *testing.T) {
	const mounts, each = 3, 40
	server := postgrestest.Shared(t)
	for _, mode := range []string{"session", "transaction"} {
		pooler := server.NewPooler(t, mode)
		table := server.NewTable(t)
		installTrigger(t, table)
		table.Write(t, prefix+"a", "")
		var all sync.WaitGroup
		var stores []opened
		for range mounts {
			stores = append(stores, open(t, pooler.URL("postgres")+"&table="+table.Name+"&prefix="+prefix, Options{}))
		}
		for n, s := range stores {
			all.Go(func() {
				for i := range each {
					unlock, err := storagetest.LockPatiently(s, "a")
					if !assert.NoError(t, err) {
						return
					}
					_, err = s.Append("a", []byte(fmt.Sprintln(n, i)))
					assert.NoError(t, err)
					assert.NoError(t, unlock())
					storagetest.Read(t, s, "a")
				}
			})
		}
		all.Wait()
		content := table.Content(t, prefix+"a")
		require.Equal(t, mounts*each, strings.Count(content, "\n"))
		for n, s := range stores {
			for i := range each {
				require.Equal(t, 1, strings.Count("\n"+content, fmt.Sprintf("\n%d %d\n", n, i)))
			}
			require.Equal(t, content, storagetest.Read(t, s, "a"))
			require.True(t, s.look.noted.Load())
			require.Empty(t, s.log.String())
			if mode == "session" {
				require.False(t, s.pool.unprepared.Load())
			}
		}
		made, err := stores[0].Replace("b", storage.Replacement{Write: storagetest.Content(lines(40_000))})
		require.NoError(t, err)
		require.Equal(t, made, storagetest.Stat(t, stores[0], "b"))
		require.Equal(t, lines(40_000), storagetest.Read(t, stores[1], "b"))
	}
}

// TestLockedTable: while the table is locked, as a client does that starts, the kept content is shown, and a write is refused
// after a moment.
func TestLockedTable(t *testing.T) {
	table, s := openTable(t, Options{Fresh: time.Millisecond})
	table.Write(t, prefix+"kept", lines(500))
	table.Write(t, prefix+"other", lines(500))
	require.NoError(t, s.lookNow(t.Context()))
	require.Equal(t, lines(500), storagetest.Read(t, s, "kept"))
	setFresh(s, time.Millisecond) // no look is under way then
	require.NotZero(t, s.sent.count(s.sql.changed))
	tx := table.Hold(t, `LOCK TABLE `+table.Name)
	for range 3 {
		require.Equal(t, lines(500), storagetest.Read(t, s, "kept"))
		items, err := storage.List(s, "")
		require.NoError(t, err)
		require.Len(t, items, 2)
		_, err = s.Lock(t.Context(), "kept")
		require.ErrorIs(t, err, storage.ErrLocked)
	}
	require.Equal(t, 1, s.sent.count(s.sql.changed), "one look waits for the lock")
	read := make(chan error, 1)
	go func() { _, err := readOther(s); read <- err }()
	require.Never(t, func() bool { return len(read) > 0 }, 10*time.Millisecond, time.Millisecond, "what is not kept was read")
	require.NoError(t, tx.Rollback(t.Context()))
	require.NoError(t, <-read)
	require.Empty(t, s.log.String())
}

// TestRefused: a server that refuses is as one that cannot be reached. Where the password was changed, the new one is found.
func TestRefused(t *testing.T) {
	table := postgrestest.Shared(t).NewTable(t)
	role := newRole(t, table, "refused", "SELECT, UPDATE")
	table.Write(t, prefix+"kept", lines(500))
	table.Write(t, prefix+"other", lines(500))
	passwords := filepath.Join(t.TempDir(), "pgpass")
	t.Setenv("PGPASSFILE", passwords)
	knows := func(password string) {
		require.NoError(t, os.WriteFile(passwords, []byte("*:*:*:"+role+":"+password), 0o600))
	}
	knows("old")
	table.Do(t, `ALTER ROLE `+role+` PASSWORD 'old'`)
	table.AskPassword(t, role)
	hangUp := func() {
		table.Do(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1`, role)
	}
	for _, c := range []struct{ refuse, allow, says string }{
		{`ALTER ROLE {role} CONNECTION LIMIT 0`, `ALTER ROLE {role} CONNECTION LIMIT -1`, "too many connections"},
		{`ALTER ROLE {role} PASSWORD 'new'`, `SELECT 1`, "password authentication failed"},
		{`ALTER ROLE {role} NOLOGIN`, `ALTER ROLE {role} LOGIN`, "not permitted to log in"},
		{`REVOKE SELECT ON {table} FROM {role}`, `GRANT SELECT ON {table} TO {role}`, "permission denied for table"},
		{`ALTER ROLE {role} SET statement_timeout = 1`, `ALTER ROLE {role} RESET statement_timeout`, "statement timeout"},
	} {
		s := openAs(t, table, role, Options{Fresh: time.Nanosecond})
		lost, back := make(chan string, 1), make(chan bool, 1)
		s.Notify(func(err error) { lost <- err.Error() }, func() { back <- true })
		require.Equal(t, lines(500), storagetest.Read(t, s, "kept"))
		do := strings.NewReplacer("{role}", role, "{table}", table.Name)
		table.Do(t, do.Replace(c.refuse))
		var locked pgx.Tx
		if strings.Contains(c.says, "timeout") { // which a look exceeds that waits
			locked = table.Hold(t, `LOCK TABLE `+table.Name)
		}
		hangUp()
		require.Eventually(t, func() bool {
			require.Equal(t, lines(500), storagetest.Read(t, s, "kept"))
			return len(lost) > 0
		}, storagetest.Generous, time.Millisecond)
		require.Contains(t, <-lost, c.says)
		_, err := readOther(s)
		require.Error(t, err)
		_, err = s.Lock(t.Context(), "kept")
		require.Error(t, err)
		if locked != nil {
			require.NoError(t, locked.Rollback(t.Context()))
		}
		table.Do(t, do.Replace(c.allow))
		if strings.Contains(c.says, "password") {
			knows("new")
		}
		hangUp()
		<-back
		require.Eventually(t, func() bool { _, err := readOther(s); return err == nil }, storagetest.Generous, time.Millisecond)
		s.Close()
	}
}

// readOther reads a row that is not kept.
func readOther(s opened) (int, error) {
	o, err := s.Open("other")
	if err != nil {
		return 0, err
	}
	defer o.Close()
	return o.ReadAt(make([]byte, 1), 0)
}

// TestLostAnswers: a write whose answer was lost is there once, whether the server carried it out or never saw it.
func TestLostAnswers(t *testing.T) {
	table := postgrestest.Shared(t).NewTable(t)
	const mark = "lost and found"
	writes := map[string]func(s *Storage) (storage.Stat, error){
		"append": func(s *Storage) (storage.Stat, error) {
			unlock := storagetest.Lock(t, s, "a")
			defer func() { _ = unlock() }()
			return s.Append("a", []byte(mark+"\n"))
		},
		"append without a lock": func(s *Storage) (storage.Stat, error) { return s.Append("a", []byte(mark+"\n")) },
		"replace":               func(s *Storage) (storage.Stat, error) { return storagetest.Replace(s, "a", "one\n"+mark+"\n") },
		"create": func(s *Storage) (storage.Stat, error) {
			table.Remove(t, prefix+"a")
			return storagetest.Replace(s, "a", "one\n"+mark+"\n")
		},
		"overwrite": func(s *Storage) (storage.Stat, error) {
			table.Append(t, prefix+"a", strings.Repeat("x", len(mark)+1))
			_, err := s.Replace("a", storage.Replacement{Expect: storagetest.Stat(t, s, "a").Token, Head: []byte("one\n" + mark + "\n")})
			return storagetest.Stat(t, s, "a"), err
		},
	}
	for what, write := range writes {
		for _, carried := range []bool{true, false} {
			l := &line{}
			s := openThrough(t, table, l, Options{})
			table.Remove(t, prefix+"a")
			table.Write(t, prefix+"a", "one\n")
			storagetest.Stat(t, s, "a")
			l.statement, l.carried = mark, carried
			st, err := write(s.Storage)
			require.NoError(t, err, "%s, carried out: %v", what, carried)
			require.Empty(t, l.statement, "it was cut")
			require.Equal(t, "one\n"+mark+"\n", table.Content(t, prefix+"a"), "%s, carried out: %v", what, carried)
			require.Equal(t, st, storagetest.Stat(t, s, "a"))
			require.Equal(t, "one\n"+mark+"\n", storagetest.Read(t, s, "a"))
		}
	}
}

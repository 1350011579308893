package postgres

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/postgres/postgrestest"
	"sessionfs/sessioncore/storage/storagetest"
)

// TestLockedTable: while somebody has locked the table, as a client does that starts, all that is kept is shown, and a write is
// refused after a moment.
func TestLockedTable(t *testing.T) {
	table, s := openTable(t, Options{Fresh: time.Millisecond})
	table.Write(t, prefix+"kept", lines(500))
	table.Write(t, prefix+"other", lines(500))
	require.NoError(t, s.lookNow(t.Context()))
	require.Equal(t, lines(500), storagetest.Read(t, s, "kept"))
	tx, err := table.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `LOCK TABLE `+table.Name)
	require.NoError(t, err)
	for range 3 {
		require.Equal(t, lines(500), storagetest.Read(t, s, "kept"))
		items, err := storage.List(s, "")
		require.NoError(t, err)
		require.Len(t, items, 2)
		_, err = s.Lock(t.Context(), "kept")
		require.ErrorIs(t, err, storage.ErrLocked)
	}
	require.Equal(t, 1, s.sent.count(s.sql.changed)-2, "one look waits for the lock")
	read := make(chan error)
	go func() { _, err := readOther(s); read <- err }()
	select {
	case err := <-read:
		require.Fail(t, "what is not kept was read", "%v", err)
	case <-time.After(10 * time.Millisecond):
	}
	require.NoError(t, tx.Rollback(t.Context()))
	require.NoError(t, <-read)
	require.Empty(t, s.log.String())
}

// TestRefused: a server that refuses is as one that cannot be reached. Where the password was changed, the new one is found.
func TestRefused(t *testing.T) {
	table := postgrestest.Shared(t).NewTable(t)
	role := "refused" + strings.Split(table.Name, ".")[0]
	table.Do(t, `CREATE ROLE `+role+` LOGIN; GRANT USAGE ON SCHEMA `+strings.Split(table.Name, ".")[0]+` TO `+role+`; GRANT SELECT, UPDATE ON `+
		table.Name+` TO `+role)
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
		s := open(t, strings.Replace(table.Source("&prefix="+prefix), "tester@", role+"@", 1), Options{Fresh: time.Nanosecond})
		lost, back := make(chan string, 1), make(chan bool, 1)
		s.Notify(func(err error) { lost <- err.Error() }, func() { back <- true })
		require.Equal(t, lines(500), storagetest.Read(t, s, "kept"))
		do := strings.NewReplacer("{role}", role, "{table}", table.Name)
		table.Do(t, do.Replace(c.refuse))
		var locked pgx.Tx
		if strings.Contains(c.says, "timeout") { // which a look exceeds that waits
			var err error
			locked, err = table.Begin(t.Context())
			require.NoError(t, err)
			_, err = locked.Exec(t.Context(), `LOCK TABLE `+table.Name)
			require.NoError(t, err)
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

// cutter breaks a connection of a storage where a statement is sent.
type cutter struct {
	mu        sync.Mutex
	statement string // "" for none
	carried   bool   // the statement reaches the server, and its answer is lost
	cuts      int
}

func (c *cutter) lose(statement string, carried bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.statement, c.carried = statement, carried
}

// dial is pgconn.DialFunc.
func (c *cutter) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	return &cutConn{Conn: conn, cutter: c}, err
}

type cutConn struct {
	net.Conn
	cutter *cutter
}

func (k *cutConn) Write(b []byte) (int, error) {
	k.cutter.mu.Lock()
	defer k.cutter.mu.Unlock()
	if k.cutter.statement == "" || !bytes.Contains(b, []byte(k.cutter.statement)) {
		return k.Conn.Write(b)
	}
	k.cutter.statement = ""
	k.cutter.cuts++
	if k.cutter.carried {
		if _, err := k.Conn.Write(b); err != nil {
			return 0, err
		}
		_, _ = k.Conn.Read(make([]byte, 1)) // the beginning of the answer
	}
	k.Conn.Close()
	return 0, io.ErrClosedPipe
}

// TestLostAnswers: a write whose answer was lost is there once, whether the server carried it out or never saw it.
func TestLostAnswers(t *testing.T) {
	table := postgrestest.Shared(t).NewTable(t)
	const mark = "lost and found"
	writes := map[string]func(s *Storage) (storage.Stat, error){
		"append": func(s *Storage) (storage.Stat, error) {
			unlock, err := s.Lock(t.Context(), "a")
			if err != nil {
				return storage.Stat{}, err
			}
			defer func() { _ = unlock() }()
			return s.Append("a", []byte(mark+"\n"))
		},
		"append without a lock": func(s *Storage) (storage.Stat, error) { return s.Append("a", []byte(mark+"\n")) },
		"replace": func(s *Storage) (storage.Stat, error) {
			return s.Replace("a", storage.Replacement{Expect: storagetest.Stat(t, s, "a").Token, Write: storagetest.Content("one\n" + mark + "\n")})
		},
		"create": func(s *Storage) (storage.Stat, error) {
			table.Remove(t, prefix+"a")
			return s.Replace("a", storage.Replacement{Write: storagetest.Content("one\n" + mark + "\n")})
		},
		"overwrite": func(s *Storage) (storage.Stat, error) {
			table.Append(t, prefix+"a", strings.Repeat("x", len(mark)+1))
			_, err := s.Replace("a", storage.Replacement{Expect: storagetest.Stat(t, s, "a").Token, Head: []byte("one\n" + mark + "\n")})
			return storagetest.Stat(t, s, "a"), err
		},
	}
	for what, write := range writes {
		for _, carried := range []bool{true, false} {
			c := &cutter{}
			src, err := ParseSource(table.Source("&prefix=" + prefix))
			require.NoError(t, err)
			src.pool.ConnConfig.DialFunc = c.dial
			s := openSource(t, src, Options{})
			table.Remove(t, prefix+"a")
			table.Write(t, prefix+"a", "one\n")
			storagetest.Stat(t, s, "a")
			c.lose(mark, carried)
			st, err := write(s.Storage)
			require.NoError(t, err, "%s, carried out: %v", what, carried)
			require.Equal(t, 1, c.cuts)
			require.Equal(t, "one\n"+mark+"\n", table.Content(t, prefix+"a"), "%s, carried out: %v", what, carried)
			require.Equal(t, st, storagetest.Stat(t, s, "a"))
			require.Equal(t, "one\n"+mark+"\n", storagetest.Read(t, s, "a"))
		}
	}
}

package fs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage/postgres"
	"sessionfs/sessioncore/storage/postgres/postgrestest"
)

// TestDatabaseKilled: two mounts and a client append to one session while the server is killed again and again. What was
// acknowledged is there, everything is there once, and what a mount wrote follows the entry that was the last one then.
func TestDatabaseKilled(t *testing.T) {
	t.Run("directly", func(t *testing.T) { databaseKilled(t, false) })
	t.Run("behind PgBouncer", func(t *testing.T) { databaseKilled(t, true) })
}

// appendThrough starts to append each lines to sessions/p/s in each mount, at the same time, and counts them in done. all
// waits for the end. An error that may not be ends the lines of a mount.
func appendThrough(t *testing.T, mounts map[string]*mount, each int, all *sync.WaitGroup, done *atomic.Int64) {
	for name, m := range mounts {
		all.Go(func() {
			for n := range each {
				line := fmt.Sprintf(`{"type":"custom","id":"%s-%d","customType":"x","data":%d}`+"\n", name, n, n)
				if !appendUntilThere(t, m, line) {
					return
				}
				done.Add(1)
			}
		})
	}
}

// appendUntilThere appends a line to sessions/p/s in a mount, again and again until it is there. After an error that may
// not be it returns false.
func appendUntilThere(t *testing.T, m *mount, line string) bool {
	for {
		err := put(m.session("s", "append"), line)
		isThere := err == nil || errors.Is(err, syscall.EEXIST) // by an earlier try that nobody answered
		if isThere {
			return true
		}
		mayBe := errors.Is(err, syscall.EIO) || errors.Is(err, syscall.EBUSY) || errors.Is(err, syscall.ESTALE)
		if !assert.Truef(t, mayBe, "%v", err) {
			return false
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// appendedOnce: each entry of a session is there once, so many in all, and in each mount. It returns the place of each.
func appendedOnce(t *testing.T, text string, mounts map[string]*mount, entries int) map[string]int {
	at := map[string]int{}
	for i, r := range records(t, text)[1:] {
		require.NotContains(t, at, r.ID)
		at[r.ID] = i
	}
	require.Len(t, at, entries)
	for _, m := range mounts {
		require.Eventually(t, func() bool { // a mount that wrote nothing after the server died connects now
			found, err := os.ReadDir(m.session("s", "entries"))
			return err == nil && len(found) == entries
		}, patience, 10*time.Millisecond)
	}
	return at
}

// databaseKilled is TestDatabaseKilled. If pooled, changes are noted by the trigger, and a mount is behind PgBouncer.
func databaseKilled(t *testing.T, pooled bool) {
	each := 60
	kills := 2
	if os.Getenv("SESSIONFS_TEST_FULL") == "1" {
		each = 2000
		kills = 20
	}
	server := postgrestest.New(t)
	a := withRow(t, server, header("s")+entry(1, "first", "", "one"))
	source := a.table.Source("&prefix=" + rowsPrefix)
	if pooled {
		src, err := postgres.ParseSource(source)
		require.NoError(t, err)
		a.table.Script(t, src.Trigger())
		source = server.NewPooler(t, "transaction").URL("postgres") + "&table=" + a.table.Name + "&prefix=" + rowsPrefix
	}
	// An append compresses the whole row anew. As the server does that by default it takes ten times as long as all the rest.
	if _, err := a.table.Exec(t.Context(), `ALTER TABLE `+a.table.Name+` ALTER content SET COMPRESSION lz4`); err != nil {
		t.Logf("slow: %v", err)
	}
	mounts := map[string]*mount{"a": a.mount, "b": mountForTest(t, source)}
	var done atomic.Int64
	var all sync.WaitGroup
	appendThrough(t, mounts, each, &all, &done)
	all.Go(func() {
		ctx := context.Background()
		for n := range each {
			line := entry(n%60, fmt.Sprintf("client-%d", n), "first", "by the client")
			for {
				_, err := a.table.Exec(ctx, `UPDATE `+a.table.Name+
					` SET content = content || $1, mtime_ms = mtime_ms + 1 WHERE position($1 in content) = 0`, line)
				if err == nil {
					break
				}
				a.table.Reset()
				time.Sleep(5 * time.Millisecond)
			}
			done.Add(1)
		}
	})
	for n := range kills {
		require.Eventually(t, func() bool { return done.Load() >= int64(3*each*n/kills) }, 10*patience, time.Millisecond)
		server.Kill()
		require.NoError(t, server.Start())
	}
	all.Wait()
	a.table.Reset()
	at := appendedOnce(t, a.row(), mounts, 3*each+1)
	for i, r := range records(t, a.row())[1:] {
		if !strings.HasPrefix(r.ID, "client") && r.ID != "first" {
			require.Contains(t, at, r.parent(), "%s: its parent is there", r.ID)
			require.Equal(t, i-1, at[r.parent()], "%s: it follows the entry that was the last one", r.ID)
		}
	}
}

// TestDatabaseFailover: the server dies while two mounts append, and its standby takes over. What was acknowledged is there, and
// everything is there once.
func TestDatabaseFailover(t *testing.T) {
	const each = 200
	server := postgrestest.New(t)
	table := server.NewTable(t)
	table.Write(t, rowsPrefix+"p/s.jsonl", header("s")+entry(1, "first", "", "one"))
	standby := server.Follow(t)
	source := "postgres://tester@/postgres?target_session_attrs=read-write&table=" + table.Name + "&prefix=" + rowsPrefix +
		"&host=" + filepath.Dir(server.Socket()) + "," + filepath.Dir(standby.Socket())
	mounts := map[string]*mount{"a": mountForTest(t, source), "b": mountForTest(t, source)}
	var done atomic.Int64
	var all sync.WaitGroup
	appendThrough(t, mounts, each, &all, &done)
	require.Eventually(t, func() bool { return done.Load() >= each }, 10*patience, time.Millisecond)
	server.Kill()
	c, err := pgx.Connect(t.Context(), standby.URL("postgres"))
	require.NoError(t, err)
	defer c.Close(t.Context())
	_, err = c.Exec(t.Context(), `SELECT pg_promote()`)
	require.NoError(t, err)
	all.Wait()
	var text string
	require.NoError(t, c.QueryRow(t.Context(), `SELECT content FROM `+table.Name).Scan(&text))
	appendedOnce(t, text, mounts, 2*each+1)
}

package fs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

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

// databaseKilled is TestDatabaseKilled. If pooled, changes are noted by the trigger, and a mount is behind PgBouncer.
func databaseKilled(t *testing.T, pooled bool) {
	each, kills := 60, 2
	if os.Getenv("SESSIONFS_TEST_FULL") == "1" {
		each, kills = 2000, 20
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
	b := database{mountForTest(t, source), a.table}
	var done atomic.Int64
	var all sync.WaitGroup
	for name, m := range map[string]database{"a": a, "b": b} {
		all.Go(func() {
			for n := range each {
				line := fmt.Sprintf(`{"type":"custom","id":"%s-%d","customType":"x","data":%d}`+"\n", name, n, n)
				for {
					err := put(m.session("s", "append"), line)
					if err == nil || errors.Is(err, syscall.EEXIST) { // by an earlier try that nobody answered
						break
					}
					if !assert.Truef(t, errors.Is(err, syscall.EIO) || errors.Is(err, syscall.EBUSY) || errors.Is(err, syscall.ESTALE), "%v", err) {
						return
					}
					time.Sleep(5 * time.Millisecond)
				}
				done.Add(1)
			}
		})
	}
	all.Go(func() {
		ctx := context.Background()
		for n := range each {
			line := entry(n%60, fmt.Sprintf("client-%d", n), "first", "by the client")
			for {
				_, err := a.table.Exec(ctx, `UPDATE `+a.table.Name+` SET content = content || $1, mtime_ms = mtime_ms + 1 WHERE position($1 in content) = 0`, line)
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
	text := a.row()
	at := map[string]int{}
	for i, r := range records(t, text)[1:] {
		require.NotContains(t, at, r.ID)
		at[r.ID] = i
		if !strings.HasPrefix(r.ID, "client") && r.ID != "first" {
			require.Contains(t, at, r.parent(), "%s: its parent is before it", r.ID)
			require.Equal(t, i-1, at[r.parent()], "%s: it follows what was the last entry", r.ID)
		}
	}
	require.Len(t, at, 3*each+1)
	for _, m := range []database{a, b} {
		require.Eventually(t, func() bool { return len(names(t, m.session("s", "entries"))) == 3*each+1 }, patience, 10*time.Millisecond)
	}
}

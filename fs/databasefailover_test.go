package fs_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage/postgres/postgrestest"
)

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
	for name, m := range mounts {
		all.Go(func() {
			for n := range each {
				line := fmt.Sprintf(`{"type":"custom","id":"%s-%d","customType":"x","data":%d}`+"\n", name, n, n)
				for err := put(m.session("s", "append"), line); err != nil; err = put(m.session("s", "append"), line) {
					if errors.Is(err, syscall.EEXIST) { // by an earlier try that nobody answered
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
	there := map[string]bool{}
	for _, r := range records(t, text)[1:] {
		require.False(t, there[r.ID], r.ID)
		there[r.ID] = true
	}
	require.Len(t, there, 2*each+1)
	for _, m := range mounts {
		require.Eventually(t, func() bool { return len(names(t, m.session("s", "entries"))) == 2*each+1 }, patience, 10*time.Millisecond)
	}
}

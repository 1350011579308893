package postgres

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/postgres/postgrestest"
	"sessionfs/sessioncore/storage/storagetest"
)

// trips counts how often something is sent after an answer: what a line that is slow takes its time for.
type trips struct {
	n        atomic.Int64
	answered atomic.Bool
}

type tripConn struct {
	net.Conn
	trips *trips
}

func (c tripConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.trips.answered.Store(true)
	return n, err
}

func (c tripConn) Write(b []byte) (int, error) {
	if c.trips.answered.Swap(false) {
		c.trips.n.Add(1)
	}
	return c.Conn.Write(b)
}

// TestRoundTrips: an append is one question beside the one that commits it, also after a look.
func TestRoundTrips(t *testing.T) {
	table := postgrestest.Shared(t).NewTable(t)
	table.Write(t, prefix+"a", "")
	src, err := ParseSource(table.Source("&prefix=" + prefix))
	require.NoError(t, err)
	var counted trips
	src.pool.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return tripConn{c, &counted}, err
	}
	s := openSource(t, src, Options{Fresh: time.Hour})
	for n := range 5 {
		before := counted.n.Load()
		unlock := storagetest.Lock(t, s, "a")
		_, err := s.Append("a", []byte("line\n"))
		require.NoError(t, err)
		require.NoError(t, unlock())
		if n > 0 { // it knows the statements
			require.Equal(t, int64(2), counted.n.Load()-before)
		}
	}
	before := counted.n.Load()
	unlock := storagetest.Lock(t, s, "a")
	require.NoError(t, unlock())
	require.Equal(t, int64(2), counted.n.Load()-before, "nothing is written, and the lock given back")
	require.NoError(t, s.lookNow(t.Context()))
	before = counted.n.Load()
	require.NoError(t, s.lookNow(t.Context()))
	require.Equal(t, int64(1), counted.n.Load()-before)
}

// TestConnections: a mount has few connections, whoever waits for whom, and none that nobody uses.
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

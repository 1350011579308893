package postgres

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage/postgres/postgrestest"
)

const prefix = "/home/me/.omp/agent/sessions/"

// traced counts what is sent to the database.
type traced struct {
	mu  sync.Mutex
	sql []string
}

func (tr *traced) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.sql = append(tr.sql, data.SQL)
	return ctx
}

func (tr *traced) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// count returns how often a statement was sent, and forgets it.
func (tr *traced) count(sql string) (n int) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	var rest []string
	for _, s := range tr.sql {
		if s == sql {
			n++
		} else {
			rest = append(rest, s)
		}
	}
	tr.sql = rest
	return n
}

// opened is a storage over a table, and what it logged and sent.
type opened struct {
	*Storage
	log  *bytes.Buffer
	sent *traced
}

// open opens a table for the test.
func open(t *testing.T, url string, o Options) opened {
	t.Helper()
	src, err := ParseSource(url)
	require.NoError(t, err)
	return openSource(t, src, o)
}

func openSource(t *testing.T, src *Source, o Options) opened {
	t.Helper()
	log, sent := &bytes.Buffer{}, &traced{}
	src.pool.ConnConfig.Tracer = sent
	o.Log = slog.New(slog.NewTextHandler(log, nil))
	s, err := Open(t.Context(), src, o)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return opened{s, log, sent}
}

// openTable returns a new table and a storage over it.
func openTable(t *testing.T, o Options) (*postgrestest.Table, opened) {
	t.Helper()
	table := postgrestest.Shared(t).NewTable(t)
	return table, open(t, table.Source("&prefix="+prefix), o)
}

// lines returns n different lines.
func lines(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(string(rune('a'+i%26)), 99-i%7) + "\n")
	}
	return b.String()
}

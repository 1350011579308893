package postgres

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
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

// TraceQueryStart implements pgx.QueryTracer.
func (tr *traced) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.sql = append(tr.sql, data.SQL)
	return ctx
}

func (tr *traced) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// count returns the number of times that a statement was sent since the last count of it.
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

// openThrough opens a table through a line.
func openThrough(t *testing.T, table *postgrestest.Table, l *line, o Options) opened {
	t.Helper()
	src, err := ParseSource(table.Source("&prefix=" + prefix))
	require.NoError(t, err)
	src.pool.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return &wire{c, l}, err
	}
	return openSource(t, src, o)
}

// openSource opens a source for the test.
func openSource(t *testing.T, src *TableSource, o Options) opened {
	t.Helper()
	log := &bytes.Buffer{}
	sent := &traced{}
	src.pool.ConnConfig.Tracer = sent
	o.Log = slog.New(slog.NewTextHandler(log, nil))
	s, err := Open(t.Context(), src, o)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return opened{s, log, sent}
}

// newRole makes a role that has rights in a table.
func newRole(t *testing.T, table *postgrestest.Table, name, rights string) (role string) {
	schema, _, _ := strings.Cut(table.Name, ".")
	role = name + schema
	table.Do(t, `CREATE ROLE `+role+` LOGIN`)
	table.Do(t, `GRANT USAGE ON SCHEMA `+schema+` TO `+role)
	table.Do(t, `GRANT `+rights+` ON `+table.Name+` TO `+role)
	return role
}

// openAs opens a table as a role.
func openAs(t *testing.T, table *postgrestest.Table, role string, o Options) opened {
	t.Helper()
	return open(t, strings.Replace(table.Source("&prefix="+prefix), "tester@", role+"@", 1), o)
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

// line is the line to a server, over which all connections of a storage go.
type line struct {
	mu        sync.Mutex
	answered  bool   // something was received after it was sent
	trips     int    // the number of requests after an answer: the time that a slow line takes
	statement string // that breaks its connection, once; "" for none
	carried   bool   // that statement reaches the server, and its answer is lost
}

// wire is a connection over a line.
type wire struct {
	net.Conn
	line *line
}

// Read implements net.Conn.
func (w *wire) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	w.line.mu.Lock()
	defer w.line.mu.Unlock()
	w.line.answered = true
	return n, err
}

// Write implements net.Conn. It counts trips, and breaks the connection at the line's statement.
func (w *wire) Write(b []byte) (int, error) {
	w.line.mu.Lock()
	defer w.line.mu.Unlock()
	if w.line.answered {
		w.line.answered = false
		w.line.trips++
	}
	isCut := w.line.statement != "" && bytes.Contains(b, []byte(w.line.statement))
	if !isCut {
		return w.Conn.Write(b)
	}
	w.line.statement = ""
	if w.line.carried {
		_, err := w.Conn.Write(b)
		if err != nil {
			return 0, err
		}
		_, _ = w.Conn.Read(make([]byte, 1)) // the beginning of the answer
	}
	w.Conn.Close()
	return 0, io.ErrClosedPipe
}

// count returns the number of trips that do takes.
func (l *line) count(do func()) int {
	before := l.trips
	do()
	return l.trips - before
}

package postgrestest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Table is a table as the client makes it, in a schema of its own.
type Table struct {
	Name string // with its schema
	*pgxpool.Pool
	server *Server
}

// Columns is what the client makes a table of.
const Columns = `(path TEXT PRIMARY KEY, content TEXT NOT NULL, mtime_ms BIGINT NOT NULL, title TEXT, title_source TEXT, title_updated_at TEXT)`

// schemas counts those of this process.
var schemas atomic.Int64

// NewTable makes a table for the test.
func (s *Server) NewTable(t testing.TB) *Table {
	t.Helper()
	schema := fmt.Sprint("t", schemas.Add(1))
	pool, err := pgxpool.New(context.Background(), s.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	table := &Table{Name: schema + ".omp_session_files", Pool: pool, server: s}
	table.Do(t, `CREATE SCHEMA `+schema)
	table.Do(t, `CREATE TABLE `+table.Name+Columns)
	return table
}

// Source returns what a mount of the table is given, with more parameters.
func (t *Table) Source(more string) string {
	return t.server.URL("postgres") + "&table=" + t.Name + more
}

// Do carries out a statement.
func (t *Table) Do(tb testing.TB, sql string, args ...any) {
	tb.Helper()
	_, err := t.Exec(context.Background(), sql, args...)
	if err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
}

// Write makes a row or writes it anew, as the client does.
func (t *Table) Write(tb testing.TB, path, content string) {
	tb.Helper()
	t.Do(tb, `INSERT INTO `+t.Name+` (path, content, mtime_ms) VALUES ($1, $2, $3)
		ON CONFLICT (path) DO UPDATE SET content = excluded.content, mtime_ms = excluded.mtime_ms`, path, content, time.Now().UnixMilli())
}

// Hold carries out a statement in a transaction that the caller ends, or the end of a test that failed.
func (t *Table) Hold(tb testing.TB, sql string, args ...any) pgx.Tx {
	tb.Helper()
	tx, err := t.Begin(context.Background())
	if err == nil {
		_, err = tx.Exec(context.Background(), sql, args...)
	}
	if err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
	tb.Cleanup(func() { _ = tx.Rollback(context.Background()) }) // an open one would keep the pool from closing
	return tx
}

// Append adds to a row as the client does, which looks at nothing.
func (t *Table) Append(tb testing.TB, path, more string) {
	tb.Helper()
	t.Do(tb, `INSERT INTO `+t.Name+` (path, content, mtime_ms) VALUES ($1, $2, $3)
		ON CONFLICT (path) DO UPDATE SET content = `+t.Name+`.content || excluded.content, mtime_ms = excluded.mtime_ms`, path, more, time.Now().UnixMilli())
}

// Remove removes a row.
func (t *Table) Remove(tb testing.TB, path string) {
	tb.Helper()
	t.Do(tb, `DELETE FROM `+t.Name+` WHERE path = $1`, path)
}

// Content returns the content of a row.
func (t *Table) Content(tb testing.TB, path string) (content string) {
	tb.Helper()
	err := t.QueryRow(context.Background(), `SELECT content FROM `+t.Name+` WHERE path = $1`, path).Scan(&content)
	if err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
	return content
}

// AskPassword makes the server ask a role for its password.
func (t *Table) AskPassword(tb testing.TB, role string) {
	tb.Helper()
	rules := fmt.Sprintf("local all %s scram-sha-256\nlocal all all trust\n", role)
	err := os.WriteFile(filepath.Join(t.server.data(), "pg_hba.conf"), []byte(rules), 0)
	if err != nil {
		tb.Fatal(err)
	}
	once := make(chan struct{})
	close(once)
	for asks := false; !asks; { // which takes a moment
		t.Do(tb, `SELECT pg_reload_conf()`)
		asks = waitFor(strings.Replace(t.server.URL("postgres"), "tester", role+":none", 1), once) != nil
	}
}

// Script carries out statements as psql does.
func (t *Table) Script(tb testing.TB, sql string) {
	tb.Helper()
	err := t.Psql(sql)
	if err != nil {
		tb.Fatal(err)
	}
}

// Psql is Script for statements that may fail.
func (t *Table) Psql(sql string) error { return t.server.psql(sql) }

package postgrestest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
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

// NewTable makes a table for the test.
func (s *Server) NewTable(t testing.TB) *Table {
	t.Helper()
	var random [6]byte
	_, _ = rand.Read(random[:]) // never fails
	schema := "t" + hex.EncodeToString(random[:])
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
	if _, err := t.Exec(context.Background(), sql, args...); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
}

// Write makes a row or writes it anew, as the client does.
func (t *Table) Write(tb testing.TB, path, content string) {
	tb.Helper()
	t.Do(tb, `INSERT INTO `+t.Name+` (path, content, mtime_ms) VALUES ($1, $2, $3)
		ON CONFLICT (path) DO UPDATE SET content = excluded.content, mtime_ms = excluded.mtime_ms`, path, content, time.Now().UnixMilli())
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
	if err := t.QueryRow(context.Background(), `SELECT content FROM `+t.Name+` WHERE path = $1`, path).Scan(&content); err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
	return content
}

// AskPassword makes the server ask a role for its password.
func (t *Table) AskPassword(tb testing.TB, role string) {
	tb.Helper()
	var rules string
	if err := t.QueryRow(context.Background(), `SHOW hba_file`).Scan(&rules); err != nil {
		tb.Fatal(err)
	}
	t.Do(tb, `COPY (VALUES ('local all `+role+` scram-sha-256'), ('local all all trust')) TO '`+rules+`'`)
	for asks := false; !asks; {
		t.Do(tb, `SELECT pg_reload_conf()`) // which takes a moment
		c, err := pgx.Connect(context.Background(), strings.Replace(t.server.URL("postgres"), "tester", role+":none", 1))
		if asks = err != nil; !asks {
			_ = c.Close(context.Background())
		}
	}
}

// Script carries out statements as psql does.
func (t *Table) Script(tb testing.TB, sql string) {
	tb.Helper()
	if err := t.Psql(sql); err != nil {
		tb.Fatal(err)
	}
}

// Psql is Script for statements that may fail.
func (t *Table) Psql(sql string) error {
	psql := t.server.command("psql", "-Xq", t.server.URL("postgres"))
	psql.Stdin = strings.NewReader(sql)
	if out, err := psql.CombinedOutput(); err != nil {
		return fmt.Errorf("psql: %w: %s", err, out)
	}
	return nil
}

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"sessionfs/sessioncore/storage/postgres/postgrestest"
)

// Sizes of row q.
const (
	rowsInTable     = 10_000
	databaseAppends = 500
	rowsPrefix      = "/home/dev/.omp/agent/"
)

// database is a PostgreSQL server on this machine, and our connections to it.
type database struct {
	*bench
	*pgxpool.Pool
	server *postgrestest.Server
}

// connect connects to a server. Callers must close the database.
func (b *bench) connect(server *postgrestest.Server) *database {
	pool, err := pgxpool.New(b.ctx, server.URL("postgres"))
	b.must(err)
	return &database{bench: b, Pool: pool, server: server}
}

// rowDatabase: sessions as rows of PostgreSQL, beside its own client on the same rows.
func rowDatabase(b *bench) []result {
	server, err := postgrestest.Start()
	if postgrestest.IsMissing(err) {
		return []result{{what: "sessions in PostgreSQL (no PostgreSQL installed: not measured)"}}
	}
	b.must(err)
	defer server.Close()
	d := b.connect(server)
	defer d.Close()
	listing := d.firstListing()
	appends := d.appends()
	index := d.index()
	return slices.Concat(listing, appends, index)
}

// exec runs a statement.
func (d *database) exec(sql string, args ...any) {
	_, err := d.Exec(d.ctx, sql, args...)
	d.must(err)
}

// query stores the one value of a query at to.
func (d *database) query(to any, sql string) { d.must(d.QueryRow(d.ctx, sql).Scan(to)) }

// table makes a table of the sessions of an agent directory.
func (d *database) table(name, agent string) {
	d.exec(`DROP TABLE IF EXISTS ` + name + `; CREATE TABLE ` + name + postgrestest.Columns)
	files, err := filepath.Glob(filepath.Join(agent, "sessions/*/*.jsonl"))
	d.must(err)
	_, err = d.CopyFrom(d.ctx, pgx.Identifier{name}, []string{"path", "content", "mtime_ms"}, pgx.CopyFromSlice(len(files), func(i int) ([]any, error) {
		text, err := os.ReadFile(files[i])
		return []any{rowsPrefix + strings.TrimPrefix(files[i], agent+"/"), string(text), time.Now().UnixMilli()}, err
	}))
	d.must(err)
	d.exec(`VACUUM ANALYZE ` + name)
	d.exec(`CHECKPOINT`)
}

// source returns the SOURCE of a table.
func (d *database) source(table string) string {
	return d.server.URL("postgres") + "&table=" + table + "&prefix=" + rowsPrefix + "sessions/"
}

// psql times the server's own client while it prints rows.
func (d *database) psql(sql string) float64 {
	return d.time(d.dir, fmt.Sprintf(`%s -XAtq -c "%s" '%s' >/dev/null`, d.server.Program("psql"), sql, d.server.URL("postgres")))
}

// firstListing: the whole row is read, and indexed.
func (d *database) firstListing() []result {
	const table, line = "one", "ls -U entries | wc -l"
	s := d.session(middleSession)
	d.table(table, s.agent)
	res := []result{{
		what:  "PostgreSQL: first `ls -U entries \\| wc -l` after a mount, a row of " + s.describe(),
		peer:  "`psql -c 'SELECT content …'`",
		ratio: 2,
	}}
	return d.measured(d.source(table), res, func(mt *mount) {
		res[0].add(d.expect(mt.Path(s.dir), line, s.entries), d.psql(`SELECT content FROM `+table))
	})
}

// appends: our writes and the same number of statements by which a client appends, each to a row of its own.
func (d *database) appends() []result {
	lines := appendLines(d.shrink(databaseAppends))
	res := []result{{
		what:  fmt.Sprintf("PostgreSQL: %d appends on one open `append`, a line each, session of %d entries", len(lines), fewEntries),
		peer:  "as many `UPDATE … SET content = content \\|\\| $1`",
		ratio: 3,
	}}
	s := d.session(spec{name: "few-rows", entries: fewEntries, bytes: fewEntries * 400})
	return d.repeat(res, func() {
		d.table("ours", s.agent)
		d.table("theirs", s.agent)
		d.withOurs(d.source("ours"), &res[0], func(mt *mount) {
			d.warmDaemon(mt, s)
			ours := d.timeWrites(mt.Path(s.dir, "append"), os.O_WRONLY, lines)
			start := time.Now()
			for _, line := range lines {
				d.exec(`UPDATE theirs SET content = content || $1, mtime_ms = greatest(mtime_ms + 1, $2) WHERE path = $3`,
					line, time.Now().UnixMilli(), rowsPrefix+s.raw)
			}
			res[0].add(ours, time.Since(start).Seconds())
			var added int
			d.query(&added, `SELECT length(content) - length(replace(content, E'\n', '')) FROM ours`)
			if want := len(lines) + 1 + s.entries; added != want {
				d.fail("there are %d lines, not %d", added, want)
			}
		})
	})
}

// index: the list of all rows.
func (d *database) index() []result {
	const table, line = "many", "cat index.jsonl | wc -l"
	n := d.shrink(rowsInTable)
	res := []result{{
		what:  fmt.Sprintf("PostgreSQL: `cat index.jsonl`, %d rows, cold daemon", n),
		peer:  "`psql -c 'SELECT …'` of the columns and the first 4 KiB",
		ratio: 2,
	}}
	d.table(table, d.manySessions(n, 4, n*4000))
	const list = `SELECT path, mtime_ms, octet_length(content), title, title_source, title_updated_at,
		substring(convert_to(content, 'UTF8') FROM 1 FOR 4096) FROM ` + table
	return d.measured(d.source(table), res, func(mt *mount) {
		res[0].add(d.expect(mt.At, line, n), d.psql(list))
	})
}

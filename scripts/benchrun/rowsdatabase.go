package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"sessionfs/sessioncore/storage/postgres/postgrestest"
)

// Sizes of row q.
const (
	rowsInTable     = 10_000
	databaseAppends = 500
	rowsPrefix      = "/home/dev/.omp/agent/"
)

// database is a PostgreSQL server on this machine with its default settings, and our connection to it.
type database struct {
	server *postgrestest.Server
	conn   *pgx.Conn
	b      *bench
}

// rowDatabase: sessions as rows of PostgreSQL, beside what its own client takes for the same rows.
func rowDatabase(ctx context.Context, b *bench) ([]result, error) {
	server, err := postgrestest.Start()
	if postgrestest.IsMissing(err) {
		return []result{{what: "sessions in PostgreSQL", note: "no PostgreSQL installed: not measured"}}, nil
	}
	if err != nil {
		return nil, err
	}
	defer server.Close()
	conn, err := pgx.Connect(ctx, server.URL("postgres"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	d := &database{server, conn, b}
	var all []result
	for _, run := range []func(context.Context) ([]result, error){d.firstListing, d.appends, d.index} {
		got, err := run(ctx)
		all = append(all, got...)
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// table makes a table of the sessions of an agent directory.
func (d *database) table(ctx context.Context, name, agent string) error {
	if _, err := d.conn.Exec(ctx, `DROP TABLE IF EXISTS `+name+`; CREATE TABLE `+name+postgrestest.Columns); err != nil {
		return err
	}
	var rows [][]any
	err := filepath.WalkDir(filepath.Join(agent, "sessions"), func(path string, item fs.DirEntry, err error) error {
		if err != nil || item.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(agent, path)
		rows = append(rows, []any{rowsPrefix + rel, string(text), time.Now().UnixMilli()})
		return err
	})
	if err != nil {
		return err
	}
	if _, err := d.conn.CopyFrom(ctx, pgx.Identifier{name}, []string{"path", "content", "mtime_ms"}, pgx.CopyFromRows(rows)); err != nil {
		return err
	}
	for _, settle := range []string{`VACUUM ANALYZE ` + name, `CHECKPOINT`} {
		if _, err := d.conn.Exec(ctx, settle); err != nil {
			return err
		}
	}
	return nil
}

func (d *database) source(table string) string {
	return d.server.URL("postgres") + "&table=" + table + "&prefix=" + rowsPrefix + "sessions/"
}

// psql returns the command line that has the server's own client print rows.
func (d *database) psql(sql string) string {
	return fmt.Sprintf(`%s -XAtq -c "%s" '%s' >/dev/null`, d.server.Program("psql"), sql, d.server.URL("postgres"))
}

func (d *database) firstListing(ctx context.Context) ([]result, error) {
	const table = "one"
	s, err := d.b.middleSession()
	if err != nil {
		return nil, err
	}
	res := result{
		what: "PostgreSQL: first `ls -U entries \\| wc -l` after a mount, a row of " + s.describe(),
		peer: "`psql -c 'SELECT content …'`", goal: goal{ratio: 2},
	}
	if err := d.table(ctx, table, s.agent); err != nil {
		return []result{res}, err
	}
	err = d.b.repeat(func(run int) error {
		return d.b.withOurs(ctx, d.source(table), &res.m, func(mt *mount) error {
			ours, err := expect(ctx, mt.path(s.dir), "ls -U entries | wc -l", s.entries)
			if err != nil {
				return err
			}
			peer, err := command(ctx, d.b.dir, d.psql(`SELECT content FROM `+table))
			if run > 0 {
				res.m.addTime(ours, peer)
			}
			return err
		})
	})
	if err != nil {
		return []result{res}, err
	}
	line := appendLines(1)[0]
	res.note, err = d.transferred(ctx, table, func(mt *mount) error {
		_, err := command(ctx, mt.path(s.dir), "ls -U entries | wc -l")
		return err
	}, func(mt *mount) error {
		if _, err := d.conn.Exec(ctx, `UPDATE `+table+` SET content = content || $1, mtime_ms = mtime_ms + 1`, strings.Replace(line, `"data"`, `"id":"bench001","parentId":null,"data"`, 1)); err != nil {
			return err
		}
		time.Sleep(kernelForgets)
		_, err := expect(ctx, mt.path(s.dir), "ls -U entries | wc -l", s.entries+1)
		return err
	})
	res.note += fmt.Sprintf(" after another client appended %d bytes", len(line))
	return []result{res}, err
}

// appends: our writes and the same number of statements by which a client appends, each to a row of its own.
func (d *database) appends(ctx context.Context) ([]result, error) {
	lines := appendLines(d.b.shrink(databaseAppends))
	res := result{
		what: fmt.Sprintf("PostgreSQL: %d appends on one open `append`, a line each, session of %d entries", len(lines), fewEntries),
		peer: "as many `UPDATE … SET content = content \\|\\| $1`", goal: goal{ratio: 3},
	}
	s, err := d.b.session(spec{name: "few-rows", entries: fewEntries, bytes: fewEntries * 400})
	if err != nil {
		return []result{res}, err
	}
	err = d.b.repeat(func(run int) error {
		for _, table := range []string{"ours", "theirs"} {
			if err := d.table(ctx, table, s.agent); err != nil {
				return err
			}
		}
		return d.b.withOurs(ctx, d.source("ours"), &res.m, func(mt *mount) error {
			if err := warmDaemon(ctx, mt, s); err != nil {
				return err
			}
			ours, err := timeWrites(mt.path(s.dir, "append"), os.O_WRONLY, lines)
			if err != nil {
				return err
			}
			start := time.Now()
			for _, line := range lines {
				if _, err := d.conn.Exec(ctx, `UPDATE theirs SET content = content || $1, mtime_ms = greatest(mtime_ms + 1, $2) WHERE path = $3`,
					line, time.Now().UnixMilli(), rowsPrefix+s.raw); err != nil {
					return err
				}
			}
			peer := time.Since(start)
			var added int
			err = d.conn.QueryRow(ctx, `SELECT length(content) - length(replace(content, E'\n', '')) FROM ours`).Scan(&added)
			if want := len(lines) + 1 + s.entries; err == nil && added != want {
				err = fmt.Errorf("there are %d lines, not %d", added, want)
			}
			if run > 0 {
				res.m.addTime(ours, peer)
			}
			return err
		})
	})
	return []result{res}, err
}

func (d *database) index(ctx context.Context) ([]result, error) {
	const table = "many"
	n := d.b.shrink(rowsInTable)
	res := []result{
		{what: fmt.Sprintf("PostgreSQL: `cat index.jsonl`, %d rows, cold daemon", n), peer: "`psql -c 'SELECT …'` of the columns and the first 4 KiB", goal: goal{ratio: 2}},
		{what: "the same, again", peer: "the same"},
	}
	agent, err := d.b.manySessions(n, 4, int64(n)*4000)
	if err != nil {
		return res, err
	}
	if err := d.table(ctx, table, agent); err != nil {
		return res, err
	}
	list := d.psql(`SELECT path, mtime_ms, octet_length(content), title, title_source, title_updated_at, substring(convert_to(content, 'UTF8') FROM 1 FOR 4096) FROM ` + table)
	const line = "cat index.jsonl | wc -l"
	err = d.b.repeat(func(run int) error {
		return d.b.withOurs(ctx, d.source(table), &res[0].m, func(mt *mount) error {
			first, err := expect(ctx, mt.dir, line, n)
			if err != nil {
				return err
			}
			peer, err := command(ctx, d.b.dir, list)
			if err != nil {
				return err
			}
			again, err := expect(ctx, mt.dir, line, n)
			if run > 0 {
				res[0].m.addTime(first, peer)
				res[1].m.addTime(again, peer)
			}
			return err
		})
	})
	if err != nil {
		return res, err
	}
	res[1].note, err = d.transferred(ctx, table, func(mt *mount) error {
		_, err := expect(ctx, mt.dir, line, n)
		return err
	}, func(mt *mount) error {
		if _, err := d.conn.Exec(ctx, `UPDATE `+table+` SET content = content || $1, mtime_ms = mtime_ms + 1 WHERE path = (SELECT min(path) FROM `+table+`)`, appendLines(1)[0]); err != nil {
			return err
		}
		time.Sleep(kernelForgets)
		_, err := expect(ctx, mt.dir, line, n)
		return err
	})
	res[1].note += " after one row of them grew by a line"
	return res, err
}

// transferred mounts a table through a socket that counts, and tells what the server sent during first, and during then.
func (d *database) transferred(ctx context.Context, table string, first, then func(mt *mount) error) (string, error) {
	at, err := os.MkdirTemp("", "pg") // a socket's path has little room
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(at)
	c, err := countAt(filepath.Join(at, postgrestest.SocketName), d.server.Socket())
	if err != nil {
		return "", err
	}
	defer c.close()
	var before, between int64
	source := strings.Replace(d.source(table), filepath.Dir(d.server.Socket()), at, 1)
	err = d.b.withOurs(ctx, source, nil, func(mt *mount) error {
		if err := first(mt); err != nil {
			return err
		}
		before = c.sent.Load()
		err := then(mt)
		between = c.sent.Load() - before
		return err
	})
	return fmt.Sprintf("the server sends %.1f MB first, and %.1f KB", float64(before)/megabyte, float64(between)/1000), errors.Join(err, ctx.Err())
}

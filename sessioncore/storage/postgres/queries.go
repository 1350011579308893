package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// queries are the statements that are sent to the database. The table's name, which was checked, is
// a part of them; all other values are parameters.
type queries struct {
	changed, noted, lockRow string
	heads, notedHeads, rest string
	append, setTitle        string
	update, insert, written string
}

const (
	// factColumns are the columns of a row's facts, in the order of rowFacts.targets.
	factColumns = `path, xmin::text AS version, octet_length(content)::bigint AS size, mtime_ms,
			title, title_source, title_updated_at`
	contentUTF8 = `convert_to(content, 'UTF8')`
)

// makeQueries returns the queries for a table. changes is the table with its noted changes
// (TableSource.Trigger), which need not be there.
func makeQueries(table, changes string) (q queries) {
	q.setChangeQueries(table, changes)
	q.setContentQueries(table, changes)
	q.setWriteQueries(table)
	return q
}

// setChangeQueries makes the queries of rows that changed.
func (q *queries) setChangeQueries(table, changes string) {
	const shown = `starts_with(path, $1)`
	// joined are the columns of r, which may be missing; its path is '' then.
	const joined = `coalesce(r.path, ''), coalesce(r.version, ''), coalesce(r.size, 0), coalesce(r.mtime_ms, 0),
		r.title, r.title_source, r.title_updated_at`

	// One statement sees one state of the database: the first transaction with changes that are not in
	// it, the server that answers, its trigger if the recorded changes can be read, and the
	// changes.
	state := `SELECT pg_snapshot_xmin(pg_current_snapshot())::text,
		extract(epoch FROM pg_postmaster_start_time())::text,
		(SELECT concat(oid, ' ', xmin) FROM pg_trigger WHERE tgrelid = to_regclass($3)
			AND tgname = '` + triggerName + `' AND tgenabled IN ('O', 'A')
		AND has_table_privilege(to_regclass('` + strings.ReplaceAll(changes, `'`, `''`) + `'), 'SELECT'))`
	// xmin has no order, but age does: a transaction that was not seen is not older than that one.
	q.changed = `SELECT n, s.*, r.path, ` + joined + `
		FROM (SELECT count(*) FROM ` + table + ` WHERE ` + shown + `) n (n), (` + state + `) s
		LEFT JOIN (SELECT ` + factColumns + ` FROM ` + table + ` WHERE ` + shown + `
			AND ($2::text = '' OR age(xmin) <= age((nullif($2::text, '')::bigint & 4294967295)::text::xid))) r ON true`
	// OFFSET 0 has each row that was noted found by its path, however many the planner expects.
	q.noted = `SELECT -1, s.*, c.path, ` + joined + ` FROM (` + state + `) s LEFT JOIN (SELECT path FROM ` + changes + `
			WHERE tab = to_regclass($3) AND xact >= (SELECT $2::text::xid8)
			AND xact < pg_snapshot_xmax(pg_current_snapshot())
			AND (path = '' OR starts_with(path, $1))) c ON true
		LEFT JOIN LATERAL (SELECT ` + factColumns + ` FROM ` + table + ` WHERE path = c.path OFFSET 0) r ON true`
}

// setContentQueries makes the queries that read beginnings and whole texts of sessions.
func (q *queries) setContentQueries(table, changes string) {
	// $2 bytes are in at most $2 characters, which the server unpacks without the rest. For a short
	// row it is faster to unpack all than to count characters.
	head := `CASE WHEN octet_length(content) <= ` + strconv.Itoa(unpackedWhole) + `
		THEN substring(` + contentUTF8 + ` FROM 1 FOR $2)
		ELSE substring(convert_to(substring(content FROM 1 FOR $2), 'UTF8') FROM 1 FOR $2) END`
	q.heads = `SELECT ` + factColumns + `, ` + head + ` FROM ` + table + ` WHERE path = ANY($1)`
	// A recorded head is the row's, unless a change was not recorded, or was in a part of a
	// transaction.
	q.notedHeads = `SELECT ` + factColumns + `, coalesce((
			SELECT substring(convert_to(c.head, 'UTF8') FROM 1 FOR $2) FROM ` + changes + ` c
			WHERE c.tab = to_regclass($3) AND c.path = t.path AND c.version = t.xmin
		), ` + head + `) FROM ` + table + ` t WHERE path = ANY($1)`
	// $2 is the size of the kept text, $3 the state that it was read in. The server unpacks the
	// content once, and sends the rest in pieces of $4 bytes, so that neither side holds more than
	// that at once.
	q.rest = `SELECT path, version, size, mtime_ms, title, title_source, title_updated_at, sum,
			substring(c FROM at FOR $4::int) FROM (
		SELECT *, CASE WHEN version = $3 THEN NULL ELSE sha256(substring(c FROM 1 FOR $2::int)) END AS sum FROM (
			SELECT ` + factColumns + `, ` + contentUTF8 + ` FROM ` + table + ` WHERE path = $1 OFFSET 0
		) r (path, version, size, mtime_ms, title, title_source, title_updated_at, c) OFFSET 0
	) r LEFT JOIN LATERAL generate_series($2::int + 1, octet_length(c), $4::int) at ON true`
}

// setWriteQueries makes the queries of a write: the lock before it, the change, and whether a write
// is there after its answer was lost.
func (q *queries) setWriteQueries(table string) {
	q.lockRow = `SELECT ` + factColumns + ` FROM ` + table + ` WHERE path = $1 FOR UPDATE`

	// The size is $5 of the row that is written to; an empty text does not compress it anew.
	const (
		asRead = ` WHERE path = $1 AND xmin::text = $2`
		later  = `mtime_ms = greatest(mtime_ms + 1, $3)`
		grown  = `content = CASE WHEN $4::text = '' THEN content ELSE content || $4::text END, ` + later
		ofSize = asRead + ` AND octet_length(content) = $5`
	)
	q.append = `UPDATE ` + table + ` SET ` + grown + ofSize + ` RETURNING ` + factColumns
	q.setTitle = `UPDATE ` + table + ` SET ` + grown + `, title = $6, title_source = $7, title_updated_at = $8` +
		ofSize + ` RETURNING ` + factColumns
	q.update = `UPDATE ` + table + ` SET content = $4, ` + later +
		`, title = $5, title_source = $6, title_updated_at = $7` + asRead + ` RETURNING ` + factColumns
	q.insert = `INSERT INTO ` + table + ` (path, mtime_ms, content, title, title_source, title_updated_at)
		SELECT $1::text, $3::bigint, $4::text, $5::text, $6::text, $7::text WHERE $2 = ''
		ON CONFLICT (path) DO NOTHING RETURNING ` + factColumns
	// A write without an answer is there if $2 bytes of content from $3 on have the hash $4.
	q.written = `SELECT ` + factColumns + `, octet_length(content) >= $2::int + $3::int
			AND sha256(substring(` + contentUTF8 + ` FROM $3::int + 1 FOR $2::int)) = $4
		FROM ` + table + ` WHERE path = $1 FOR UPDATE`
}

// checkTable returns the schema of the table, quoted, or an error unless the client made it.
func (s *Storage) checkTable(ctx context.Context, src *TableSource) (schema string, err error) {
	var version int
	var encoding string
	var columns []string
	err = s.read(ctx, readLimit, func(ctx context.Context, c conn) error {
		return c.QueryRow(ctx, `SELECT current_setting('server_version_num')::int, current_setting('server_encoding'),
			coalesce((SELECT quote_ident(nspname) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
				WHERE c.oid = to_regclass($1)), ''),
			array(SELECT attname || ' ' || format_type(atttypid, NULL) FROM pg_attribute
				WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped)`,
			src.table).Scan(&version, &encoding, &schema, &columns)
	})
	if err != nil {
		return "", err
	}
	has := map[string]bool{} // by name and type
	for _, column := range columns {
		has[column] = true
	}
	switch {
	case version < minVersion:
		err = fmt.Errorf("PostgreSQL %d or newer is needed, this is %d", minVersion/10000, version/10000)
	case encoding != "UTF8":
		err = fmt.Errorf("the database has the encoding %s, not UTF8: sessions are UTF-8", encoding)
	case len(columns) == 0:
		err = fmt.Errorf("there is no table %s, or this user may not see it: the client makes it when it first runs",
			src.Table)
	case !has["path text"] || !has["content text"] || !has["mtime_ms bigint"]:
		err = fmt.Errorf("the table %s is not one of sessions: it needs path text, content text and mtime_ms bigint",
			src.Table)
	case !has["title text"] || !has["title_source text"] || !has["title_updated_at text"]:
		err = fmt.Errorf("the table %s lacks columns that a newer client adds when it starts: ALTER TABLE %[1]s "+
			"ADD IF NOT EXISTS title TEXT, ADD IF NOT EXISTS title_source TEXT, ADD IF NOT EXISTS title_updated_at TEXT",
			src.Table)
	}
	return schema, err
}

// minVersion is the first version that has pg_current_snapshot.
const minVersion = 130000

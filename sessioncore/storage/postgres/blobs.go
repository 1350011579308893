package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// BlobsTable is the name of the table that holds blobs, in the schema of the sessions' table: path is the SHA-256 of
// content, in hex (docs/design.md section 1, A database as SOURCE).
const BlobsTable = "sessionfs_blobs"

// Blobs implements storage.Storage with blobs as rows of a table of ours. A row is only read when the server says that its
// content has the hash that is its name, and only as long as it stays that row.
type Blobs struct{ *Storage }

// OpenBlobs opens the table of blobs that belongs to s, and makes it if mayMake and it is not there. Callers must close it,
// before s.
func (s *Storage) OpenBlobs(ctx context.Context, mayMake bool) (*Blobs, error) {
	var schema string
	var columns []string
	look := func() error {
		return s.read(ctx, func(ctx context.Context, c conn) error {
			return c.QueryRow(ctx, `SELECT n.nspname, array(SELECT attname || ' ' || format_type(atttypid, NULL) FROM pg_attribute
				WHERE attrelid = to_regclass(format('%I.%I', n.nspname, $2::text)) AND attnum > 0 AND NOT attisdropped)
				FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass($1)`, s.quoted, BlobsTable).Scan(&schema, &columns)
		})
	}
	if err := look(); err != nil {
		return nil, fmt.Errorf("the table of blobs: %w", err)
	}
	quoted := pgx.Identifier{schema, BlobsTable}.Sanitize()
	if len(columns) == 0 && mayMake {
		if err := s.makeBlobs(ctx, quoted); err != nil {
			return nil, err
		}
		if err := look(); err != nil {
			return nil, err
		}
	}
	has := strings.Join(columns, ", ")
	switch {
	case has == "":
		return nil, fmt.Errorf("there is no table %s: a mount with -o blobs=postgres that is not read-only makes it", quoted)
	case has != "path text, content bytea, mtime_ms bigint":
		return nil, fmt.Errorf("the table %s is not one of blobs: it has %s", quoted, has)
	}
	b := &Blobs{newStorage(s.opts)}
	b.pool, b.shared = s.pool, true
	b.table, b.quoted = schema+"."+BlobsTable, quoted
	b.device = xxhash.Sum64String(fmt.Sprintf("sessionfs blobs %d", s.device))
	b.ours = s.ours
	b.sql = makeQueries(quoted, "pg_catalog.no_changes", ofBlobs)
	if err := b.lookNow(ctx); err != nil {
		b.Close()
		return nil, fmt.Errorf("the table %s cannot be read: %w", quoted, err)
	}
	return b, nil
}

// makeBlobs makes the table. Images are compressed already, and a part of a value that the server did not compress is read
// without the rest.
func (s *Storage) makeBlobs(ctx context.Context, quoted string) error {
	statements := `CREATE TABLE IF NOT EXISTS ` + quoted + ` (path TEXT PRIMARY KEY, content BYTEA NOT NULL, mtime_ms BIGINT NOT NULL);
		ALTER TABLE ` + quoted + ` ALTER content SET STORAGE EXTERNAL`
	// One at a time: two that make the same table at once would hinder each other.
	once := fmt.Sprintf(`SELECT pg_advisory_xact_lock(%d); `, int64(xxhash.Sum64String("sessionfs\x00"+quoted)))
	err := s.read(ctx, func(ctx context.Context, c conn) error {
		_, err := c.Exec(ctx, once+statements) // one transaction
		return err
	})
	if err != nil {
		return fmt.Errorf("the table %s of the blobs cannot be made: %w; who may can run:\n%s;", quoted, err, statements)
	}
	return nil
}

// isWhole reports whether a blob is what its name says, which the server is asked if it is not known. version is the state of
// the row in which it is.
func (b *Blobs) isWhole(r *row) (version string, whole bool, err error) {
	c := &r.content
	f, _ := c.facts()
	c.mu.Lock()
	known := c.verified == f.version
	c.mu.Unlock()
	if known {
		return f.version, true, nil
	}
	err = b.try(readLimit, func(ctx context.Context, c conn) error {
		return c.QueryRow(ctx, `SELECT xmin::text, encode(sha256(content), 'hex') = path FROM `+b.quoted+` WHERE path = $1`, f.path).Scan(&version, &whole)
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		err = missing("open", f.path)
	case err == nil && whole:
		c.mu.Lock()
		c.verified = version
		c.mu.Unlock()
	}
	return version, whole, err
}

// IsWhole reports whether a blob is what its name says, without reading it.
func (b *Blobs) IsWhole(name string) (bool, error) {
	r, err := b.fileNow("open", name)
	if err != nil {
		return false, err
	}
	_, whole, err := b.isWhole(r)
	return whole, err
}

// Open implements storage.Storage.
func (b *Blobs) Open(name string) (storage.Object, error) {
	if name == "" {
		return nil, fmt.Errorf("%w: the root", storage.ErrBadName)
	}
	for range contentTries {
		r, err := b.fileNow("open", name)
		if err != nil {
			return nil, err
		}
		f, _ := r.content.facts()
		version, whole, err := b.isWhole(r)
		switch {
		case err != nil:
			return nil, err
		case !whole:
			return nil, fmt.Errorf("%w: the content of this blob in the database is not what its name says", unix.EIO)
		case version == f.version:
			return &blob{object{row: r}, version}, nil
		}
		b.lookAgain()
	}
	return nil, fmt.Errorf("%w: %s changes all the time", storage.ErrStale, name)
}

// Replace implements storage.Journal. The content must be what the name says.
func (b *Blobs) Replace(name string, r storage.Replacement) (storage.Stat, error) {
	if r.Write == nil { // a blob stays what it is
		return storage.Stat{}, storage.ErrUnsupported
	}
	return b.replaceBy(name, r, func(content string) ([]any, error) {
		data := []byte(content)
		sum := sha256.Sum256(data)
		switch {
		case hex.EncodeToString(sum[:]) != name:
			return nil, fmt.Errorf("%w: a blob's name is its hash: %s", fs.ErrInvalid, name)
		case len(data) > maxContent/2: // a dump of the table has it as text, twice as long
			return nil, fmt.Errorf("%w: a database stores no more than %d MiB in a blob", unix.EFBIG, maxContent/2>>20)
		}
		return []any{data}, nil
	})
}

// Append implements storage.Storage: nothing is added to a blob.
func (b *Blobs) Append(string, []byte) (storage.Stat, error) {
	return storage.Stat{}, storage.ErrUnsupported
}

// blob is an open blob: one state of a row.
type blob struct {
	object
	version string
}

// ReadAt implements storage.Object.
func (o *blob) ReadAt(p []byte, off int64) (int, error) {
	n, err := o.object.ReadAt(p, off)
	c := &o.row.content
	c.mu.Lock()
	defer c.mu.Unlock()
	version := c.version
	if version == "" && c.dropped != nil {
		version = c.dropped.version
	}
	if version != "" && version != o.version {
		return 0, fmt.Errorf("%w: blob %s was replaced", storage.ErrStale, c.name())
	}
	return n, err
}

package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"sessionfs/sessioncore/storage"
)

// insertAtOnce is the longest content of a copy that one statement has as a parameter, which takes its size in memory several
// times. Longer ones are sent in pieces, by COPY; PostgreSQL does not allow that for a table with row-level security.
const insertAtOnce = 4 << 20

// uniqueViolation is PostgreSQL's code for a row whose path is taken.
const uniqueViolation = "23505"

// stream returns the change that makes the row of a path by COPY.
func (in *incoming) stream(path string, mtime, size int64) (change, error) {
	sum := sha256.New()
	if err := checkFile(io.NewSectionReader(in.f, 0, size), sum); err != nil {
		return change{}, err
	}
	var titles *title
	if in.s.sql.titles {
		slot := make([]byte, slotSize)
		if err := storage.ReadFull(in.f, slot, 0); err != nil {
			return change{}, err
		}
		t := titleOf(slot)
		titles = &t
	}
	head := copyHead(path, mtime, titles, size)
	c := change{path: path, size: size, sum: sum.Sum(nil)}
	c.send = func(ctx context.Context, conn *pgx.Conn) (facts, error) {
		return in.s.copyRow(ctx, conn, path, io.MultiReader(bytes.NewReader(head), io.NewSectionReader(in.f, 0, size), bytes.NewReader(copyEnd)))
	}
	return c, nil
}

// copyRow makes a row by COPY, and commits it. The error is pgx.ErrNoRows if there is one already.
func (s *Storage) copyRow(ctx context.Context, conn *pgx.Conn, path string, row io.Reader) (facts, error) {
	if conn.PgConn().TxStatus() == 'I' {
		if _, err := conn.Exec(ctx, `BEGIN`); err != nil {
			return facts{}, err
		}
	}
	_, err := conn.PgConn().CopyFrom(ctx, row, s.sql.copy)
	var said *pgconn.PgError
	if errors.As(err, &said) && said.Code == uniqueViolation {
		return facts{}, pgx.ErrNoRows
	}
	if err != nil {
		return facts{}, err
	}
	return commit(ctx, conn, s.sql.one, path)
}

// copyEnd ends what COPY reads.
var copyEnd = binary.BigEndian.AppendUint16(nil, 0xffff)

// copyHead returns what COPY reads before the content, in PostgreSQL's binary format. titles is nil for a table without them.
func copyHead(path string, mtime int64, titles *title, size int64) []byte {
	out := append([]byte("PGCOPY\n\xff\r\n\x00"), make([]byte, 8)...) // no flags, no extension
	field := func(data []byte) {
		out = binary.BigEndian.AppendUint32(out, uint32(len(data)))
		out = append(out, data...)
	}
	columns := 3
	if titles != nil {
		columns += 3
	}
	out = binary.BigEndian.AppendUint16(out, uint16(columns))
	field([]byte(path))
	field(binary.BigEndian.AppendUint64(nil, uint64(mtime)))
	if titles != nil {
		for _, text := range []*string{titles.text, titles.source, titles.updated} {
			if text == nil {
				out = binary.BigEndian.AppendUint32(out, 0xffffffff)
				continue
			}
			field([]byte(*text))
		}
	}
	return binary.BigEndian.AppendUint32(out, uint32(size))
}

// checkFile is checkText for a file of any size. What it reads it writes to sum too.
func checkFile(r io.Reader, sum io.Writer) error {
	buf, have := make([]byte, 64<<10), 0
	for {
		n, err := r.Read(buf[have:])
		_, _ = sum.Write(buf[have : have+n])
		have += n
		whole := have
		if err == nil {
			whole = wholeRunes(buf[:have])
		}
		if err := checkText(buf[:whole], 0); err != nil {
			return err
		}
		have = copy(buf, buf[whole:have])
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// wholeRunes returns how much of data there is without a rune at its end that has only begun.
func wholeRunes(data []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(data); n++ {
		if at := len(data) - n; utf8.RuneStart(data[at]) {
			if utf8.FullRune(data[at:]) {
				break
			}
			return at
		}
	}
	return len(data)
}

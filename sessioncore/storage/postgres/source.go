package postgres

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// DefaultTable is the name that the client gives the table.
const DefaultTable = "omp_session_files"

// TableSource names a database and a table in it.
type TableSource struct {
	// Shown is the source without a password, for messages.
	Shown string
	// Table is the table's name as PostgreSQL keeps it, with the schema if one was given.
	Table string
	// Prefix selects the rows that are shown: their paths begin with it. HasPrefix says that it was
	// given.
	Prefix    string
	HasPrefix bool

	table string // quoted
	pool  *pgxpool.Config
}

// maxIdentifier is the longest name that PostgreSQL does not cut.
const maxIdentifier = 63

// isIdentifier reports whether a table may have that name. The client allows the same, without a
// schema.
func isIdentifier(name string) bool {
	if name == "" || len(name) > maxIdentifier {
		return false
	}
	for i, c := range []byte(name) {
		lower := c | 0x20
		isLetter := lower >= 'a' && lower <= 'z'
		isDigit := c >= '0' && c <= '9'
		isLaterDigit := isDigit && i > 0
		if c != '_' && !isLetter && !isLaterDigit {
			return false
		}
	}
	return true
}

// normalizeTable makes the table's name the one that PostgreSQL keeps, and sets the quoted one. It returns an
// error for a name that the client does not allow.
func (src *TableSource) normalizeTable() error {
	parts := strings.Split(src.Table, ".")
	for i, part := range parts {
		if !isIdentifier(part) || len(parts) > 2 {
			return fmt.Errorf("table=%.80q: a table's name has letters, digits and _, 63 at most, "+
				"and no digit at its beginning; a schema may be before it: schema.table", src.Table)
		}
		parts[i] = strings.ToLower(part) // as PostgreSQL does where the client does not quote it
	}
	src.Table = strings.Join(parts, ".")
	src.table = pgx.Identifier(parts).Sanitize()
	return nil
}

// ErrPassword means that a URL has a password, which all users could read in the list of processes.
var ErrPassword = errors.New("a password does not belong on the command line, where all users see it: " +
	"leave it out, and put it into ~/.pgpass, PGPASSWORD or a service file")

// ParseSource parses postgres://user@host/database?table=…&prefix=…; other parameters are as for
// PostgreSQL's own tools. No error has the text of the URL, which may have a password.
func ParseSource(text string) (*TableSource, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("not a URL of the form postgres://user@host/database")
	}
	if u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return nil, errors.New("not a URL that begins with postgres://")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, errors.New("what follows the question mark is not a list of parameters: name=value&…")
	}
	_, secret := u.User.Password()
	if secret || query.Has("password") || query.Has("sslpassword") {
		return nil, ErrPassword
	}
	src := &TableSource{
		Table:     DefaultTable,
		Prefix:    query.Get("prefix"),
		HasPrefix: query.Has("prefix"),
	}
	if query.Has("table") {
		src.Table = query.Get("table")
	}
	err = src.normalizeTable()
	if err != nil {
		return nil, err
	}
	shown := *u
	shown.Fragment = ""
	shown.RawFragment = ""
	src.Shown = shown.String()

	query.Del("table") // PostgreSQL would refuse parameters that it does not know
	query.Del("prefix")
	u.RawQuery = query.Encode()
	src.pool, err = pgxpool.ParseConfig(u.String())
	if err != nil {
		return nil, fmt.Errorf("the URL cannot be used: %w", err) // pgx leaves passwords out
	}
	return src, nil
}

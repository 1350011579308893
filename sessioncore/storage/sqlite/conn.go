package sqlite

import (
	"errors"

	"github.com/ncruces/go-sqlite3"
)

// maxPrepared bounds the prepared statements that a connection keeps.
const maxPrepared = 16

// Conn is a connection in a transaction of Database.Read. It keeps prepared statements for later
// transactions, since to prepare one takes as long as to read a short session.
type Conn struct {
	*sqlite3.Conn
	version  Version
	prepared map[string]*sqlite3.Stmt // those that are not in use, by their queries
}

// Version is the state of a database that a transaction read.
type Version struct {
	state fileState
	at    int64 // when it was in this state, in ns
}

// Version returns the state that the transaction reads.
func (c *Conn) Version() Version { return c.version }

// Reads reports whether the transaction reads the same state as an earlier one. It is false where a write may
// not have changed the times of the files.
func (c *Conn) Reads(earlier Version) bool {
	isSettled := !earlier.state.log.Racy(earlier.at) && !earlier.state.database.Racy(earlier.at)
	return isSettled && c.version.state == earlier.state
}

// EachRow calls f for each row of a query until f fails. arguments are the texts for its parameters. f may run another query, the
// same one too. What it gets of a row is valid until it returns.
func (c *Conn) EachRow(query string, arguments []string, f func(row *sqlite3.Stmt) error) error {
	stmt, err := c.takeStatement(query)
	if err != nil {
		return err
	}
	isReset := false
	defer func() {
		isFull := len(c.prepared) >= maxPrepared
		if !isReset || isFull {
			_ = stmt.Close()
			return
		}
		c.prepared[query] = stmt
	}()
	err = runStatement(stmt, arguments, f)
	isReset = err == nil
	return err
}

// takeStatement returns the statement of a query, which is not in use by others then.
func (c *Conn) takeStatement(query string) (*sqlite3.Stmt, error) {
	stmt := c.prepared[query]
	if stmt != nil {
		delete(c.prepared, query)
		return stmt, nil
	}
	stmt, _, err := c.Prepare(query)
	return stmt, err
}

// runStatement calls f for each row of a statement until f fails. Without an error the statement can be used once more.
func runStatement(stmt *sqlite3.Stmt, arguments []string, f func(row *sqlite3.Stmt) error) error {
	for i, argument := range arguments {
		err := stmt.BindText(i+1, argument)
		if err != nil {
			return err
		}
	}
	for stmt.Step() {
		err := f(stmt)
		if err != nil {
			return err
		}
	}
	err := stmt.Reset() // with the error of the last step
	if err != nil {
		return err
	}
	return stmt.ClearBindings()
}

// IsDamage reports whether an error of EachRow tells that a page of the table is damaged. Other pages of it
// may be read.
func IsDamage(err error) bool { return errors.Is(err, sqlite3.CORRUPT) }

// closePrepared closes the statements, without which the connection would stay open.
func (c *Conn) closePrepared() {
	for _, stmt := range c.prepared {
		_ = stmt.Close()
	}
	c.prepared = nil
}

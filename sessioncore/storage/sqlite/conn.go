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

// EachRow calls f for each row of a query until f fails. arguments are the texts for its parameters.
func (c *Conn) EachRow(query string, arguments []string, f func(row *sqlite3.Stmt) error) (err error) {
	stmt := c.prepared[query]
	delete(c.prepared, query)
	if stmt == nil {
		stmt, _, err = c.Prepare(query)
	}
	if err != nil {
		return err
	}
	isDone := false
	defer func() {
		if !isDone || len(c.prepared) >= maxPrepared {
			_ = stmt.Close()
			return
		}
		c.prepared[query] = stmt
	}()
	for i, argument := range arguments {
		err = stmt.BindText(i+1, argument)
		if err != nil {
			return err
		}
	}
	for stmt.Step() {
		err = f(stmt)
		if err != nil {
			return err
		}
	}
	err = stmt.Reset() // with the error of the last step
	if err == nil {
		err = stmt.ClearBindings()
	}
	isDone = err == nil
	return err
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

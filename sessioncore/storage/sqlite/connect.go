package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"

	"sessionfs/sessioncore/budget"
)

// limits are the limits that SQLite's documentation recommends for untrusted databases (Defense
// Against The Dark Arts), but for expressions: with a smaller limit than an index of the client has, no
// table can be read. No expression of the schema runs here but those of generated columns.
var limits = map[sqlite3.LimitCategory]int{
	sqlite3.LIMIT_SQL_LENGTH:          100_000,
	sqlite3.LIMIT_COLUMN:              100,
	sqlite3.LIMIT_EXPR_DEPTH:          100,
	sqlite3.LIMIT_COMPOUND_SELECT:     3,
	sqlite3.LIMIT_VDBE_OP:             25_000,
	sqlite3.LIMIT_FUNCTION_ARG:        100,
	sqlite3.LIMIT_ATTACHED:            0,
	sqlite3.LIMIT_LIKE_PATTERN_LENGTH: 50,
	sqlite3.LIMIT_VARIABLE_NUMBER:     10,
	sqlite3.LIMIT_TRIGGER_DEPTH:       10,
}

// pragmas: no shared memory, so that the connection has its own index of the log; read-only;
// temporary tables in memory; checks for damage.
const pragmas = `PRAGMA locking_mode=EXCLUSIVE; PRAGMA query_only=ON; PRAGMA trusted_schema=OFF;
PRAGMA temp_store=MEMORY; PRAGMA cell_size_check=ON`

// settings of the connection: the schema cannot run code, and closing writes nothing back.
var settings = map[sqlite3.DBConfig]bool{
	sqlite3.DBCONFIG_DEFENSIVE:        true,
	sqlite3.DBCONFIG_ENABLE_TRIGGER:   false,
	sqlite3.DBCONFIG_ENABLE_VIEW:      false,
	sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE: true,
}

// connections counts the connections; the number names the file system of each.
var connections atomic.Int64

// outOfMemory is the library's panic value when it runs out of memory.
var outOfMemory = sync.OnceValue(func() (reason any) {
	defer func() { reason = recover() }()
	sqlite3.WithMaxMemory(context.Background(), -1)
	return nil
})

// ErrNoMemory means that a connection needs more memory than it may have.
var ErrNoMemory = fmt.Errorf("%w: the database takes too much", budget.ErrNoMemory)

// errDamaged means that a database made the library panic.
var errDamaged = errors.New("the database is damaged")

// Limits bound a connection.
type Limits struct {
	Memory int64 // bytes of the connection
	Value  int   // bytes of a value
}

// connection is a connection to a database in a file system of its own.
type connection struct {
	conn   *sqlite3.Conn
	system string // the name of its file system
}

// open returns a connection. Callers must close it.
func open(files vfs.VFS, name string, bounds Limits) (c *connection, err error) {
	c = &connection{system: "sessionfs-" + strconv.FormatInt(connections.Add(1), 10)}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	defer recoverTo(&err)
	vfs.Register(c.system, files)
	ctx := sqlite3.WithMaxMemory(context.Background(), bounds.Memory)
	c.conn, err = sqlite3.OpenContext(ctx, "file:"+name+"?mode=ro&vfs="+c.system)
	if err != nil {
		return c, err
	}
	return c, configure(c.conn, bounds.Value)
}

// use calls f with the connection, until ctx ends.
func (c *connection) use(ctx context.Context, f func(*sqlite3.Conn) error) (err error) {
	defer recoverTo(&err)
	before := c.conn.SetInterrupt(ctx)
	defer c.conn.SetInterrupt(before)
	return f(c.conn)
}

// recoverTo sets the error for a panic of the library, and leaves it without one. It must be deferred itself.
func recoverTo(err *error) {
	reason := recover()
	switch {
	case reason == nil:
	case reason == outOfMemory():
		*err = ErrNoMemory
	default:
		*err = fmt.Errorf("%w: %v", errDamaged, reason)
	}
}

// close closes the connection and its files.
func (c *connection) close() {
	defer vfs.Unregister(c.system)
	defer func() { _ = recover() }() // a damaged connection may panic again
	_ = c.conn.Close()
}

// configure sets the limits and settings of a connection.
func configure(conn *sqlite3.Conn, value int) error {
	conn.Limit(sqlite3.LIMIT_LENGTH, value)
	for id, limit := range limits {
		conn.Limit(id, limit)
	}
	for id, on := range settings {
		_, err := conn.Config(id, on)
		if err != nil {
			return err
		}
	}
	return conn.Exec(pragmas)
}

package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

const (
	// connections is how many are open at most: one for each write that waits for its lock, and one for whatever is read.
	connections = 8
	// connectLimit and readLimit bound how long a reader of the mount waits for a server that does not answer.
	connectLimit = 3 * time.Second
	readLimit    = 30 * time.Second
	// idleLimit is after what time the server takes back the locks of a process that was stopped in the middle of a write.
	idleLimit = 10 * time.Second
	// readTries is how often something is read where a connection breaks; others may have broken at the same time.
	readTries = 3
	// firstPause and lastPause are the times between two tries to reach a server that is gone.
	firstPause, lastPause = 50 * time.Millisecond, time.Second
)

// ErrUnreachable means that the database did not answer. What is kept can still be read.
var ErrUnreachable = fmt.Errorf("the database cannot be reached: %w", unix.EIO)

// conn is a connection, or a transaction on one.
type conn interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// prepare sets what all connections have in common.
func prepare(config *pgxpool.Config) {
	config.MaxConns = connections
	config.MaxConnIdleTime = 5 * time.Minute
	c := config.ConnConfig
	if c.ConnectTimeout == 0 || c.ConnectTimeout > connectLimit {
		c.ConnectTimeout = connectLimit
	}
	set := func(name, value string) {
		if _, given := c.RuntimeParams[name]; !given {
			c.RuntimeParams[name] = value
		}
	}
	set("application_name", "sessionfs")
	c.RuntimeParams["client_encoding"] = "UTF8" // content is read as it is
	// As long as others wait for a lock file.
	set("lock_timeout", fmt.Sprint(storage.LockLimit.Milliseconds()))
	set("idle_in_transaction_session_timeout", fmt.Sprint(idleLimit.Milliseconds()))
	config.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		// What was written is durable when write(2) returns, also where the server is told to be faster than that.
		_, err := c.Exec(ctx, `SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'`)
		return err
	}
}

// lostConnection reports whether err means that the connection is gone or the server is not there, so that nothing is
// known of what was sent.
func lostConnection(err error) bool {
	if err == nil || errors.Is(err, pgx.ErrNoRows) {
		return false
	}
	var said *pgconn.PgError
	if !errors.As(err, &said) {
		return true
	}
	// Class 08: connection exceptions. Class 57P: the server ends, or is not ready. Class 25P03: it waited too long for us.
	return strings.HasPrefix(said.Code, "08") || strings.HasPrefix(said.Code, "57P") || said.Code == "25P03"
}

// unreachable returns ErrUnreachable with its reason. The reason is text only: its errno would say something of a socket.
func unreachable(err error) error { return fmt.Errorf("%w (%v)", ErrUnreachable, err) }

// saidError returns the error of this package for what the server said.
func saidError(err error) error {
	var said *pgconn.PgError
	if !errors.As(err, &said) {
		return err
	}
	kind := error(unix.EIO)
	switch {
	case said.Code == "55P03": // lock_timeout
		kind = storage.ErrLocked
	case said.Code == "42501":
		kind = fs.ErrPermission
	case said.Code == "25006":
		kind = unix.EROFS
	case said.Code == "0A000": // the table is of a kind that cannot do that
		kind = unix.EPERM
	case strings.HasPrefix(said.Code, "40"): // a deadlock or the like, and nothing was done
		kind = storage.ErrStale
	case said.Code == "53100":
		kind = unix.ENOSPC
	case strings.HasPrefix(said.Code, "54"):
		kind = unix.EFBIG
	case strings.HasPrefix(said.Code, "22"):
		kind = unix.EINVAL
	}
	return fmt.Errorf("%w: PostgreSQL says: %s (%s)", kind, said.Message, said.Code)
}

// read calls do with a connection, and once more with another one where that turns out to be broken: do changes nothing.
func (s *Storage) read(ctx context.Context, do func(ctx context.Context, c conn) error) error {
	return s.readFor(ctx, readLimit, do)
}

func (s *Storage) readFor(ctx context.Context, limit time.Duration, do func(ctx context.Context, c conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var err error
	for range readTries {
		err = s.pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error { return do(ctx, c) })
		if !lostConnection(err) {
			if err != nil && !errors.Is(err, pgx.ErrNoRows) {
				err = saidError(err)
			}
			return err
		}
		if ctx.Err() != nil {
			break
		}
		s.pool.Reset() // the others broke at the same time
	}
	return unreachable(err)
}

// try is read for what is asked while others wait. It does not wait for a server that is known to be gone.
func (s *Storage) try(limit time.Duration, do func(ctx context.Context, c conn) error) error {
	if reason := s.broken.Load(); reason != nil {
		return *reason
	}
	return s.noted(s.readFor(context.Background(), limit, do))
}

// noted begins to look for the server if err says that it is gone.
func (s *Storage) noted(err error) error {
	if errors.Is(err, ErrUnreachable) && s.broken.CompareAndSwap(nil, &err) {
		s.opts.Log.Error("the database cannot be reached; what is kept can be read", "err", err)
		s.lost(err)
		s.work(s.comeBack)
	}
	return err
}

// work runs f, which ends with s.ctx, until Close.
func (s *Storage) work(f func()) {
	s.mu.Lock() // Close waits only for what began before it
	defer s.mu.Unlock()
	if s.ctx.Err() == nil {
		s.working.Go(storage.Guarded(f))
	}
}

// comeBack tries to reach the database until it answers.
func (s *Storage) comeBack() {
	for pause := firstPause; storage.Sleep(s.ctx, pause); pause = min(2*pause, lastPause) {
		if s.lookNow(s.ctx) == nil {
			s.broken.Store(nil)
			s.opts.Log.Info("the database can be reached again")
			s.back()
			return
		}
	}
}

// lock is the lock of a row that this process holds: an advisory one, by the row's path, against other mounts, and until
// the first write also the row's own, against clients, which know nothing of the other.
type lock struct {
	conn *pgxpool.Conn
	// version is the state of the row that a write replaces, "" if there is no row. A write changes it.
	version string
	broken  bool // nothing can be told by conn any more
}

// keyOf returns the number by which all mounts of the table lock a row.
func (s *Storage) keyOf(path string) int64 {
	return int64(xxhash.Sum64String("sessionfs\x00" + s.table + "\x00" + path))
}

// Lock implements storage.Storage. The server gives the lock back if this process ends.
func (s *Storage) Lock(ctx context.Context, name string) (func() error, error) {
	if err := storage.CheckName(name); err != nil {
		return nil, err
	}
	if err := s.refresh(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	err := s.checkParent("lock", name)
	s.mu.RUnlock()
	if err != nil {
		return nil, err
	}
	limited, cancel := storage.WithLimit(ctx)
	defer cancel()
	_, leave, err := s.fifo.Lock(limited, name)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, name)
	}
	l, err := s.lockRow(limited, name)
	if err != nil {
		leave()
		return nil, err
	}
	s.mu.Lock()
	s.held[name] = l
	s.mu.Unlock()
	return sync.OnceValue(func() error {
		s.mu.Lock()
		delete(s.held, name)
		s.mu.Unlock()
		s.unlock(l, s.PathOf(name))
		leave()
		return nil // the server gives back the locks of a connection that broke
	}), nil
}

// lockRow takes the locks of a row, and brings the catalogue up to date with it.
func (s *Storage) lockRow(ctx context.Context, name string) (*lock, error) {
	path := s.PathOf(name)
	var err error
	for range readTries {
		if reason := s.broken.Load(); reason != nil {
			return nil, *reason
		}
		var l *lock
		if l, err = s.lockOnce(ctx, path); err == nil {
			return l, nil
		}
		switch {
		case ctx.Err() != nil:
			return nil, fmt.Errorf("%w: %s", storage.WaitError(ctx), name)
		case !lostConnection(err):
			return nil, fmt.Errorf("%w: %s", saidError(err), name)
		}
		s.pool.Reset()
	}
	return nil, s.noted(unreachable(err))
}

func (s *Storage) lockOnce(ctx context.Context, path string) (*lock, error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	var f maybeFacts
	var batch pgx.Batch
	batch.Queue(`SELECT pg_advisory_lock($1)`, s.keyOf(path))
	batch.Queue(`BEGIN`)
	batch.Queue(s.sql.lockRow, path)
	asked := s.now()
	results := conn.SendBatch(ctx, &batch)
	_, err = results.Exec()
	if err == nil {
		_, err = results.Exec()
	}
	if err == nil {
		err = results.QueryRow().Scan(f.targets()...)
	}
	gone := errors.Is(err, pgx.ErrNoRows)
	if gone {
		err = nil
	}
	err = errors.Join(err, results.Close())
	l := &lock{conn: conn}
	if err != nil {
		s.unlock(l, path)
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if gone {
		s.remove(path)
		return l, nil
	}
	s.put(f.facts(), asked)
	l.version = *f.version
	return l, nil
}

// unlockLimit is how long a server may take to give a lock back, before the connection is closed for that.
const unlockLimit = 2 * time.Second

// unlock gives the locks back. Where that cannot be done, it closes the connection.
func (s *Storage) unlock(l *lock, path string) {
	defer l.conn.Release()
	c := l.conn.Conn()
	if l.broken || c.IsClosed() {
		s.hangUp(c)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), unlockLimit)
	defer cancel()
	var batch pgx.Batch
	if c.PgConn().TxStatus() != 'I' {
		batch.Queue(`ROLLBACK`)
	}
	batch.Queue(`SELECT pg_advisory_unlock($1)`, s.keyOf(path))
	if err := c.SendBatch(ctx, &batch).Close(); err != nil {
		s.hangUp(c)
	}
}

func (s *Storage) hangUp(c *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), unlockLimit)
	defer cancel()
	_ = c.Close(ctx)
}

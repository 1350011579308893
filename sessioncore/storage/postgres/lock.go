package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/jackc/pgx/v5"

	"sessionfs/sessioncore/storage"
)

// lock is a transaction that locks a row for this process until its first write: by an advisory
// lock of the row's path against other mounts, and by the row's own lock against clients, which do
// not know the first.
type lock struct {
	conn    conn // nil after the write, as its commit releases both locks
	release func()
	// version is the state of the row that a write replaces, "" if there is no row. A write changes
	// it.
	version string
}

// settings are set in each transaction that writes, as a pooler may give the next one another
// connection. A write waits as long as others wait for a lock file; the server releases the locks
// of a process that was stopped; and written data is durable when write(2) returns, whatever the
// server's synchronous_commit is.
var settings = fmt.Sprintf(`set_config('lock_timeout', '%d', true),
	set_config('idle_in_transaction_session_timeout', '%d', true),
	CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', true) END`,
	storage.LockLimit.Milliseconds(), idleLimit.Milliseconds())

// beginWrite adds the statements to a batch that begin a transaction with the advisory lock of a
// row.
func (s *Storage) beginWrite(batch *pgx.Batch, path string) {
	batch.Queue(`BEGIN ISOLATION LEVEL READ COMMITTED`)
	key := int64(xxhash.Sum64String("sessionfs\x00" + s.table + "\x00" + path))
	batch.Queue(`SELECT `+settings+`, pg_advisory_xact_lock($1)`, key)
}

// Lock implements storage.Storage. The server releases the lock with the first write, or if this
// process ends.
func (s *Storage) Lock(ctx context.Context, name string) (func() error, error) {
	err := s.checkParentNow("lock", name)
	if err != nil {
		return nil, err
	}
	limited, cancel := storage.WithLimit(ctx)
	defer cancel()
	_, leave, err := s.fifo.Lock(limited, name) // among callers of this process
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
	unlock := func() error {
		s.mu.Lock()
		delete(s.held, name)
		s.mu.Unlock()
		l.end()
		leave()
		return nil // the server releases the locks of a connection that broke
	}
	return sync.OnceValue(unlock), nil
}

// checkParentNow is checkParent in the table as it is now, unless the directory was there before.
func (s *Storage) checkParentNow(op, name string) error {
	check := func() error {
		s.mu.RLock()
		defer s.mu.RUnlock()
		return s.checkParent(op, name)
	}
	err := check()
	if storage.IsMissing(err) {
		s.refresh()
		err = check()
	}
	return err
}

// end ends the transaction if no write did, and releases its connection.
func (l *lock) end() {
	if l.conn != nil {
		l.conn = nil
		l.release()
	}
}

// lockRow takes the locks of a row, and brings the catalogue up to date with it. The row need not exist. The
// error wraps storage.ErrLocked if another program holds a lock too long.
func (s *Storage) lockRow(ctx context.Context, name string) (*lock, error) {
	var err error
	for range tries {
		reason := s.broken.Load()
		if reason != nil {
			return nil, *reason
		}
		var l *lock
		l, err = s.lockOnce(ctx, s.PathOf(name))
		if err == nil {
			return l, nil
		}
		switch {
		case ctx.Err() != nil:
			return nil, fmt.Errorf("%w: %s", storage.WaitError(ctx), name)
		case !s.pool.canRetry(err):
			return nil, fmt.Errorf("%w: %s", serverError(err), name)
		}
	}
	return nil, s.checkReachable(unreachable(err))
}

// lockOnce is one attempt to lock the row with a path.
func (s *Storage) lockOnce(ctx context.Context, path string) (*lock, error) {
	conn, release, err := s.pool.acquire(ctx, s.pool.writing)
	if err != nil {
		return nil, err
	}
	var f rowFacts
	var batch pgx.Batch
	s.beginWrite(&batch, path)
	batch.Queue(s.sql.lockRow, path)
	err = answer(conn.SendBatch(ctx, &batch), batch.Len(), f.targets()...)
	gone := errors.Is(err, pgx.ErrNoRows)
	if err != nil && !gone {
		release()
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &lock{conn: conn, release: release}
	if gone {
		s.remove(path)
		return l, nil
	}
	s.put(f, s.clock) // a look that ended meanwhile may have seen an older state, but no newer one
	l.version = f.version
	return l, nil
}

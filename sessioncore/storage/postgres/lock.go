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

// lock is the lock of a row that this process holds until its first write, as a transaction: an advisory one, by the row's path,
// against other mounts, and the row's own against clients, which know nothing of the other.
type lock struct {
	conn    conn // nil after that: a write is durable when it returns, and what commits it gives the locks back
	release func()
	// version is the state of the row that a write replaces, "" if there is no row. A write changes it.
	version string
}

// settings are what a write needs and cannot be set for a connection: a pooler might have another one for the next statement.
// It waits as long as others wait for a lock file; the locks of a process that was stopped are taken back; and what was
// written is durable when write(2) returns, also where the server is told to be faster than that.
var settings = fmt.Sprintf(`set_config('lock_timeout', '%d', true), set_config('idle_in_transaction_session_timeout', '%d', true),
	CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', true) END`,
	storage.LockLimit.Milliseconds(), idleLimit.Milliseconds())

// beginWrite adds to a batch what begins a transaction that has the advisory lock of a row.
func (s *Storage) beginWrite(batch *pgx.Batch, path string) {
	batch.Queue(`BEGIN ISOLATION LEVEL READ COMMITTED`)
	batch.Queue(`SELECT `+settings+`, pg_advisory_xact_lock($1)`, int64(xxhash.Sum64String("sessionfs\x00"+s.table+"\x00"+path)))
}

// Lock implements storage.Storage. The server gives the lock back with the first write, or if this process ends.
func (s *Storage) Lock(ctx context.Context, name string) (func() error, error) {
	if err := s.checkParentNow("lock", name); err != nil {
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
		l.giveBack()
		leave()
		return nil // the server gives back the locks of a connection that broke
	}), nil
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

// giveBack ends the transaction if no write did.
func (l *lock) giveBack() {
	if l.conn != nil {
		l.conn = nil
		l.release()
	}
}

// lockRow takes the locks of a row, and brings the catalogue up to date with it.
func (s *Storage) lockRow(ctx context.Context, name string) (*lock, error) {
	var err error
	for range tries {
		if reason := s.broken.Load(); reason != nil {
			return nil, *reason
		}
		var l *lock
		if l, err = s.lockOnce(ctx, s.PathOf(name)); err == nil {
			return l, nil
		}
		switch {
		case ctx.Err() != nil:
			return nil, fmt.Errorf("%w: %s", storage.WaitError(ctx), name)
		case !s.pool.again(err):
			return nil, fmt.Errorf("%w: %s", saidError(err), name)
		}
	}
	return nil, s.noted(unreachable(err))
}

func (s *Storage) lockOnce(ctx context.Context, path string) (*lock, error) {
	conn, release, err := s.pool.take(ctx, s.pool.writing)
	if err != nil {
		return nil, err
	}
	var f maybeFacts
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
	s.put(f.facts(), s.clock) // a look that ended meanwhile may have seen an older state, but no newer one
	l.version = *f.version
	return l, nil
}

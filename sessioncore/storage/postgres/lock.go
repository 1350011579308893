package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"sessionfs/sessioncore/storage"
)

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
		s.unlock(l, s.pathOf(name))
		leave()
		return nil // the server gives back the locks of a connection that broke
	}), nil
}

// lockRow takes the locks of a row, and brings the catalogue up to date with it.
func (s *Storage) lockRow(ctx context.Context, name string) (*lock, error) {
	path := s.pathOf(name)
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

package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

const (
	// connections is how many are open at most. Of these as many as half may read, and as many write, so that neither waits for
	// the other.
	connections, half = 3, 2
	// unused is after what time at most a connection is closed that nobody uses.
	unused = time.Minute
	// connectLimit and readLimit bound how long a reader of the mount waits for a server that does not answer.
	connectLimit = 3 * time.Second
	readLimit    = 30 * time.Second
	// idleLimit is after what time the server takes back the locks of a process that was stopped in the middle of a write.
	idleLimit = 10 * time.Second
	// tries is how often something is done where a connection breaks; others may have broken at the same time.
	tries = 3
	// firstPause and lastPause are the times between two tries to reach a server that is gone.
	firstPause, lastPause = 50 * time.Millisecond, 5 * time.Second
)

// ErrUnreachable means that the database did not answer. What is kept can still be read.
var ErrUnreachable = fmt.Errorf("the database cannot be reached: %w", unix.EIO)

// conn is a connection.
type conn = *pgx.Conn

// pool is the connections of a mount, to the server or to a pooler that gives each transaction another one of its own.
type pool struct {
	*pgxpool.Pool
	reading, writing chan struct{} // full if no more of them may be used for that
	unprepared       atomic.Bool   // no statement is prepared
	breaks           atomic.Int64  // how often a connection broke
}

func newPool(ctx context.Context, config *pgxpool.Config) (p *pool, err error) {
	p = &pool{reading: make(chan struct{}, half), writing: make(chan struct{}, half)}
	config.MaxConns = connections
	config.MaxConnIdleTime, config.HealthCheckPeriod = unused/2, unused/4
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false } // whoever finds it broken gets another one
	c := config.ConnConfig
	if c.ConnectTimeout == 0 || c.ConnectTimeout > connectLimit {
		c.ConnectTimeout = connectLimit
	}
	// Nothing else is set for a connection: poolers refuse it, or give it to somebody else.
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "sessionfs"
	}
	c.RuntimeParams["client_encoding"] = "UTF8" // content is read as it is
	c.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: endLimit} // the server shall not go on for nobody
	}
	config.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		if p.unprepared.Load() {
			c.DefaultQueryExecMode = pgx.QueryExecModeExec
		}
		if now, err := pgconn.ParseConfig(c.ConnString()); err == nil {
			c.Password = now.Password // which may have been changed
		}
		return nil
	}
	p.Pool, err = pgxpool.NewWithConfig(ctx, config)
	return p, err
}

// take returns a connection for reading or for writing. Callers must call release.
func (p *pool) take(ctx context.Context, of chan struct{}) (c conn, release func(), err error) {
	select {
	case of <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	pooled, err := p.Acquire(ctx)
	if err != nil {
		<-of
		return nil, nil, err
	}
	return pooled.Conn(), func() {
		end(pooled.Conn())
		pooled.Release()
		<-of
	}, nil
}

// use calls do with a connection for reading or for writing.
func (p *pool) use(ctx context.Context, of chan struct{}, do func(c conn) error) error {
	c, release, err := p.take(ctx, of)
	if err != nil {
		return err
	}
	defer release()
	return do(c)
}

// end ends the transaction that a connection is in. Where that cannot be done, it closes the connection.
func end(c conn) {
	if c.IsClosed() || c.PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	if _, err := c.Exec(ctx, `ROLLBACK`); err != nil {
		_ = c.Close(ctx)
	}
}

// endLimit is how long a server may take to end a transaction, before the connection is closed for that.
const endLimit = 2 * time.Second

// again reports whether what failed may be done again, with another connection: it is gone, or a pooler gave it to somebody else
// who prepared a statement of the same name, or none. Such a pooler is sent no statements to prepare from then on.
func (p *pool) again(err error) bool {
	var said *pgconn.PgError
	var connecting *pgconn.ConnectError
	switch {
	case errors.As(err, &connecting):
		return true
	case errors.As(err, &said) && (said.Code == "26000" || said.Code == "42P05"):
		p.unprepared.Store(true)
	case lostConnection(err):
		p.breaks.Add(1)
	default:
		return false
	}
	p.Reset() // the others broke at the same time
	return true
}

// lostConnection reports whether err means that the connection is gone or the server is not there, so that nothing is
// known of what was sent.
func lostConnection(err error) bool {
	if err == nil || errors.Is(err, pgx.ErrNoRows) {
		return false
	}
	var said *pgconn.PgError
	var connecting *pgconn.ConnectError
	if errors.As(err, &connecting) || !errors.As(err, &said) {
		return true
	}
	// Class 08: connection exceptions. Class 57P: the server ends, or is not ready. Class 25P03: it waited too long for us.
	return strings.HasPrefix(said.Code, "08") || strings.HasPrefix(said.Code, "57P") || said.Code == "25P03"
}

// unreachable returns ErrUnreachable with its reason. The reason is text only: its errno would say something of a socket.
func unreachable(err error) error { return fmt.Errorf("%w (%v)", ErrUnreachable, err) }

// refusals are the errors for codes of PostgreSQL, or their classes.
var refusals = []struct {
	code string
	kind error
}{
	{"55P03", storage.ErrLocked}, // lock_timeout
	{"42501", fs.ErrPermission},
	{"25006", unix.EROFS},
	{"0A000", unix.EPERM},    // the table is of a kind that cannot do that
	{"40", storage.ErrStale}, // a deadlock or the like, and nothing was done
	{"53100", unix.ENOSPC},
	{"54", unix.EFBIG},
	{"22", unix.EINVAL},
}

// saidError returns the error of this package for what the server said.
func saidError(err error) error {
	var said *pgconn.PgError
	if !errors.As(err, &said) {
		return err
	}
	kind := error(unix.EIO)
	for _, known := range refusals {
		if strings.HasPrefix(said.Code, known.code) {
			kind = known.kind
		}
	}
	return fmt.Errorf("%w: PostgreSQL says: %s (%s)", kind, said.Message, said.Code)
}

// read calls do with a connection, and again with another one where that turns out to be broken: do changes nothing.
func (s *Storage) read(ctx context.Context, limit time.Duration, do func(ctx context.Context, c conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var err error
	for range tries {
		err = s.pool.use(ctx, s.pool.reading, func(c conn) error { return do(ctx, c) })
		if err == nil || errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if ctx.Err() != nil {
			return unreachable(fmt.Errorf("no answer within %v", limit))
		}
		if !s.pool.again(err) {
			return saidError(err)
		}
	}
	return unreachable(err)
}

// try is read for what is asked while others wait. It does not wait for a server that is known to be gone.
func (s *Storage) try(limit time.Duration, do func(ctx context.Context, c conn) error) error {
	if reason := s.broken.Load(); reason != nil {
		return *reason
	}
	return s.noted(s.read(context.Background(), limit, do))
}

// noted begins to look for the server if err says that it is gone.
func (s *Storage) noted(err error) error {
	if errors.Is(err, ErrUnreachable) {
		s.lose(err)
	}
	return err
}

// lose goes on with what is kept, until the server answers a look.
func (s *Storage) lose(err error) {
	if s.broken.CompareAndSwap(nil, &err) {
		s.opts.Log.Error("the database does not answer; what is kept can be read", "err", err)
		s.lost(err)
		s.work(s.comeBack)
	}
}

// work runs f, which ends with s.ctx, until Close. It returns false after that.
func (s *Storage) work(f func()) bool {
	s.mu.Lock() // Close waits only for what began before it
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	s.working.Go(storage.Guarded(f))
	return true
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

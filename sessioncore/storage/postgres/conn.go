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
	// connections bounds the open connections. As many as half may read, and as many write, so that
	// neither waits for the other.
	connections = 3
	half        = 2
	// unused is the time after which an idle connection is closed.
	unused = time.Minute
	// connectLimit and readLimit bound the time that a reader waits for a server that does not
	// answer.
	connectLimit = 3 * time.Second
	readLimit    = 30 * time.Second
	// idleLimit is the time after which the server releases the locks of a process that was stopped
	// during a write.
	idleLimit = 10 * time.Second
	// tries bounds the attempts of an operation after its connection breaks; others may break at the
	// same time.
	tries = 3
	// firstPause and lastPause are the times between two tries to reach a server that is gone.
	firstPause, lastPause = 50 * time.Millisecond, 5 * time.Second
)

// ErrUnreachable means that the database did not answer. The kept content can still be read.
var ErrUnreachable = fmt.Errorf("the database cannot be reached: %w", unix.EIO)

// conn is a connection.
type conn = *pgx.Conn

// pool is the connections of a mount, to the server or to a pooler that gives each transaction
// another one of its own.
type pool struct {
	*pgxpool.Pool
	reading, writing chan struct{} // full if no more of them may be used for that
	unprepared       atomic.Bool   // no statement is prepared
	breaks           atomic.Int64  // how often a connection broke
}

// newPool opens a pool of connections.
func newPool(ctx context.Context, config *pgxpool.Config) (p *pool, err error) {
	p = &pool{reading: make(chan struct{}, half), writing: make(chan struct{}, half)}
	config.MaxConns = connections
	config.MaxConnIdleTime = unused / 2
	config.HealthCheckPeriod = unused / 4
	// A caller that finds its connection broken gets another one.
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	configure(config.ConnConfig)
	config.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		if p.unprepared.Load() {
			c.DefaultQueryExecMode = pgx.QueryExecModeExec
		}
		now, err := pgconn.ParseConfig(c.ConnString())
		if err == nil {
			c.Password = now.Password // it may have changed
		}
		return nil
	}
	p.Pool, err = pgxpool.NewWithConfig(ctx, config)
	return p, err
}

// configure sets the parameters of each connection. They are as few as possible: a pooler refuses others, or
// gives the connection with them to another client.
func configure(c *pgx.ConnConfig) {
	if c.ConnectTimeout == 0 || c.ConnectTimeout > connectLimit {
		c.ConnectTimeout = connectLimit
	}
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "sessionfs"
	}
	c.RuntimeParams["client_encoding"] = "UTF8" // content is read as it is
	// It ends queries without a reader.
	c.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: endLimit}
	}
}

// acquire returns a connection for a use, which is p.reading or p.writing. It waits until there is one, or ctx
// is done. Callers must call release once, unless there is an error.
func (p *pool) acquire(ctx context.Context, use chan struct{}) (c conn, release func(), err error) {
	select {
	case use <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	pooled, err := p.Acquire(ctx)
	if err != nil {
		<-use
		return nil, nil, err
	}
	release = func() {
		end(pooled.Conn())
		pooled.Release()
		<-use
	}
	return pooled.Conn(), release, nil
}

// with calls do with a connection for a use, and returns its error or acquire's.
func (p *pool) with(ctx context.Context, use chan struct{}, do func(c conn) error) error {
	c, release, err := p.acquire(ctx, use)
	if err != nil {
		return err
	}
	defer release()
	return do(c)
}

// end ends the transaction that a connection is in. Where that cannot be done, the pool closes the
// connection.
func end(c conn) {
	if c.IsClosed() || isIdle(c) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	_, _ = c.Exec(ctx, `ROLLBACK`)
}

// isIdle reports whether a connection is in no transaction, by the status in the server's last answer.
func isIdle(c conn) bool { return c.PgConn().TxStatus() == 'I' }

// endLimit bounds the time that a server takes to end a transaction, before the connection is closed for
// that.
const endLimit = 2 * time.Second

// canRetry reports whether a failed operation may be repeated with another connection: this one is
// gone, or a pooler shares it with a client that prepared a statement of the same name, or none.
// Such a pooler gets no statements to prepare from then on.
func (p *pool) canRetry(err error) bool {
	const (
		noSuchStatement = "26000" // invalid_sql_statement_name
		twoStatements   = "42P05" // duplicate_prepared_statement
	)
	var answer *pgconn.PgError
	var connecting *pgconn.ConnectError
	switch {
	case errors.As(err, &connecting):
		return true
	case errors.As(err, &answer) && (answer.Code == noSuchStatement || answer.Code == twoStatements):
		p.unprepared.Store(true)
	case lostConnection(err):
		p.breaks.Add(1)
	default:
		return false
	}
	p.Reset() // the others broke at the same time
	return true
}

// lostConnection reports whether err means that the connection or the server is gone, so that the
// fate of a request is not known.
func lostConnection(err error) bool {
	if err == nil || errors.Is(err, pgx.ErrNoRows) {
		return false
	}
	var answer *pgconn.PgError
	var connecting *pgconn.ConnectError
	if errors.As(err, &connecting) || !errors.As(err, &answer) {
		return true
	}
	isOfConnection := strings.HasPrefix(answer.Code, "08")
	isServerDown := strings.HasPrefix(answer.Code, "57P") // it ends, or is not ready
	hasTimedOut := answer.Code == "25P03"                 // idle_in_transaction_session_timeout
	return isOfConnection || isServerDown || hasTimedOut
}

// unreachable returns ErrUnreachable with its reason as text only: its errno would be a
// socket's.
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

// serverError returns the error of this package for an error of the server, EIO for an unknown code. Other
// errors stay as they are.
func serverError(err error) error {
	var answer *pgconn.PgError
	if !errors.As(err, &answer) {
		return err
	}
	kind := error(unix.EIO)
	for _, known := range refusals {
		if strings.HasPrefix(answer.Code, known.code) {
			kind = known.kind
		}
	}
	return fmt.Errorf("%w: PostgreSQL says: %s (%s)", kind, answer.Message, answer.Code)
}

// read calls do, which changes nothing, with a connection, and repeats it with another one if that
// breaks. The error is ErrUnreachable if the server does not answer within limit, or one of serverError, or
// pgx.ErrNoRows as it is.
func (s *Storage) read(ctx context.Context, limit time.Duration, do func(ctx context.Context, c conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var err error
	for range tries {
		err = s.pool.with(ctx, s.pool.reading, func(c conn) error {
			return do(ctx, c)
		})
		if err == nil || errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if ctx.Err() != nil {
			return unreachable(fmt.Errorf("no answer within %v", limit))
		}
		if !s.pool.canRetry(err) {
			return serverError(err)
		}
	}
	return unreachable(err)
}

// try is read for requests that others wait for. It fails at once while the server is known to be
// gone.
func (s *Storage) try(limit time.Duration, do func(ctx context.Context, c conn) error) error {
	reason := s.broken.Load()
	if reason != nil {
		return *reason
	}
	return s.checkReachable(s.read(context.Background(), limit, do))
}

// checkReachable begins to search for the server if err says that it is gone. It returns err.
func (s *Storage) checkReachable(err error) error {
	if errors.Is(err, ErrUnreachable) {
		s.markUnreachable(err)
	}
	return err
}

// markUnreachable makes the storage serve the kept content until the server answers again. It does nothing if
// the storage is so already.
func (s *Storage) markUnreachable(err error) {
	if s.broken.CompareAndSwap(nil, &err) {
		s.opts.Log.Error("the database does not answer; what is kept can be read", "err", err)
		s.onLost(err)
		s.work(s.reconnect)
	}
}

// work runs f, which ends with s.ctx, until Close. It returns false after that.
func (s *Storage) work(f func()) bool {
	s.mu.Lock() // Close waits only for functions that began before it
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	s.working.Go(storage.Guarded(f))
	return true
}

// reconnect tries to reach the database until it answers.
func (s *Storage) reconnect() {
	pause := firstPause
	for storage.Sleep(s.ctx, pause) {
		err := s.lookNow(s.ctx)
		if err == nil {
			s.broken.Store(nil)
			s.opts.Log.Info("the database can be reached again")
			s.onBack()
			return
		}
		pause = min(2*pause, lastPause)
	}
}

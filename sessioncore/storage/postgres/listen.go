package postgres

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"sessionfs/sessioncore/storage"
)

const (
	// triggerEvery is how often is looked whether the table has its trigger by now.
	triggerEvery = time.Minute
	// lastListenPause is the longest time between two tries to listen again: without that, changes show by looking.
	lastListenPause = 10 * time.Second
)

// listener hears of changes of the table where it has the trigger (Source.Trigger). A table is looked at as often as without
// it: a connection that broke in silence must not hide anything.
type listener struct {
	told  atomic.Int64 // how often a change was told, or found, or may have been missed
	ours  sync.Map     // the process numbers of this storage's connections: what they wrote is known
	asked time.Time    // when the trigger was looked for; guarded by look.mu
	on    bool         // it was there; guarded by look.mu
}

// noteConnections keeps listener.ours.
func (l *listener) noteConnections(config *pgxpool.Config) {
	prepared := config.AfterConnect
	config.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		l.ours.Store(c.PgConn().PID(), true)
		return prepared(ctx, c)
	}
	config.BeforeClose = func(c *pgx.Conn) { l.ours.Delete(c.PgConn().PID()) }
}

// listenIfTold begins to listen if the table has the trigger, which somebody may have installed since. Callers must hold
// look.mu.
func (s *Storage) listenIfTold(ctx context.Context) {
	l := &s.listener
	if l.on || time.Since(l.asked) < triggerEvery {
		return
	}
	l.asked = time.Now()
	var channel string
	err := s.read(ctx, func(ctx context.Context, c conn) error {
		return c.QueryRow(ctx, `SELECT $2::text || tgrelid::text FROM pg_trigger WHERE tgrelid = to_regclass($1) AND tgname = $3 AND tgenabled <> 'D'`,
			s.quoted, channelOf, triggerName).Scan(&channel)
	})
	if err != nil {
		if !errors.Is(err, pgx.ErrNoRows) {
			s.opts.Log.Debug("whether the table tells of its changes is not known", "err", err)
		}
		return
	}
	l.on = true
	s.work(func() { s.listen(channel) })
}

// listen hears on a connection of its own until Close, and makes another one where it breaks.
func (s *Storage) listen(channel string) {
	for pause := firstPause; ; pause = min(2*pause, lastListenPause) {
		begun, err := s.hear(s.ctx, channel)
		if begun {
			pause = firstPause
		}
		s.opts.Log.Debug("changes of the table are not told for now", "err", err)
		if !storage.Sleep(s.ctx, pause) {
			return
		}
	}
}

// hear counts what is told until the connection breaks. begun says that it was made.
func (s *Storage) hear(ctx context.Context, channel string) (begun bool, err error) {
	c, err := pgx.ConnectConfig(ctx, s.pool.Config().ConnConfig)
	if err != nil {
		return false, err
	}
	defer s.hangUp(c)
	if _, err := c.Exec(ctx, `LISTEN `+pgx.Identifier{channel}.Sanitize()); err != nil {
		return false, err
	}
	s.listener.told.Add(1) // what changed before
	for {
		n, err := c.WaitForNotification(ctx)
		if err != nil {
			return true, err
		}
		if _, ours := s.listener.ours.Load(n.PID); !ours {
			s.listener.told.Add(1)
		}
	}
}

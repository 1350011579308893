package postgres

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"sessionfs/sessioncore/storage"
)

// listener hears of changes of the table where it has the trigger (Source.Trigger). A table is looked at as often as without
// it: a connection that broke in silence must not hide anything.
type listener struct {
	told atomic.Int64 // how often a change was told, or found, or may have been missed
	ours sync.Map     // the process numbers of this storage's connections: what they wrote is known
	on   bool         // a look has found the trigger; guarded by look.mu
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

// listen hears on a connection of its own until Close, and makes another one where it breaks.
func (s *Storage) listen(channel string) {
	for {
		err := s.hear(s.ctx, channel)
		s.opts.Log.Debug("changes of the table are not told for now", "err", err)
		if !storage.Sleep(s.ctx, lastPause) { // meanwhile changes show by looking
			return
		}
	}
}

// hear counts what is told until the connection breaks.
func (s *Storage) hear(ctx context.Context, channel string) error {
	c, err := pgx.ConnectConfig(ctx, s.pool.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer s.hangUp(c)
	if _, err := c.Exec(ctx, `LISTEN `+pgx.Identifier{channel}.Sanitize()); err != nil {
		return err
	}
	s.listener.told.Add(1) // what changed before
	for {
		n, err := c.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		if _, ours := s.listener.ours.Load(n.PID); !ours {
			s.listener.told.Add(1)
		}
	}
}

// triggerName is the name of the trigger by which a mount knows that changes of the table are told.
const triggerName = "sessionfs"

// channelOf begins the name of the channel on which they are told; the table's number follows, so that nobody has to agree
// on how the table is called.
const channelOf = "sessionfs_"

// Trigger returns the statements that make the table of a source tell of its changes, for an administrator to run. They
// tell that something changed and not what, as a message has 8,000 bytes and a longer one would make a client's write fail.
func (src *Source) Trigger() string {
	schema := ""
	if name, _, has := strings.Cut(src.Table, "."); has {
		schema = pgx.Identifier{name}.Sanitize() + "."
	}
	return strings.NewReplacer("TABLE", src.table, "SCHEMA.", schema, "NAME", triggerName, "CHANNEL", channelOf).Replace(triggerText)
}

// Every name in the function has its schema: it runs as whoever writes, with that user's search_path.
const triggerText = `-- Mounts of TABLE see changes at once, not within a second.
-- To take it back: DROP TRIGGER NAME ON TABLE; DROP FUNCTION SCHEMA.sessionfs_tell();
BEGIN;
CREATE OR REPLACE FUNCTION SCHEMA.sessionfs_tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_catalog.pg_notify(pg_catalog.concat('CHANNEL', TG_RELID), '');
  RETURN NULL;
END $$;
DROP TRIGGER IF EXISTS NAME ON TABLE;
CREATE TRIGGER NAME AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON TABLE
  FOR EACH STATEMENT EXECUTE FUNCTION SCHEMA.sessionfs_tell();
COMMIT;
`

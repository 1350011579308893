package postgres

import (
	"strings"

	"github.com/jackc/pgx/v5"
)

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

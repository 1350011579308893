package postgres

import (
	"strconv"
	"strings"
)

const (
	// triggerName names the trigger that records changes of the table, and changesTable the table
	// beside it that has them.
	triggerName  = "sessionfs_changes"
	changesTable = "sessionfs_changes"
)

// Trigger returns statements that an administrator runs with psql. They install a trigger that
// records the changed rows of the source's table, the transactions and the heads in a table of
// ours. A look then reads these alone, and lists need no contents.
func (src *TableSource) Trigger() string {
	bytes := strconv.Itoa(headSize)
	names := strings.NewReplacer("SESSIONS", src.table, "BYTES", bytes)
	return names.Replace(triggerText)
}

// A transaction gets its number before others see its changes, so a look asks for the changes of
// all transactions that may have run during the look before (queries.noted). Each changed row has
// one record.
//
// The function runs as its owner, so that writers need no right to our table, with a search_path in
// which no other user can put a table of that name: an existing one is its owner's, or nothing is
// installed. Every write succeeds, whatever becomes of our table. Existing rows are recorded in
// parts, so that no client waits for all of them.
const triggerText = `-- Mounts of SESSIONS are told what changed, and need not look at the whole table for that.
-- Once more, it brings what is noted up to date, as after a dump was restored.
-- To take it back: DROP TRIGGER sessionfs_changes ON SESSIONS; DROP TRIGGER sessionfs_truncated ON SESSIONS;
-- and, if no other table in the schema has them: DROP FUNCTION sessionfs_change(); DROP TABLE sessionfs_changes;
\set ON_ERROR_STOP on
DO $$ BEGIN
  PERFORM set_config('search_path', quote_ident(nspname) || ', pg_temp', false)
    FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE c.oid = 'SESSIONS'::regclass;
END $$;
BEGIN;
CREATE TABLE IF NOT EXISTS sessionfs_changes
  (tab oid, path text, xact xid8 NOT NULL, version xid NOT NULL, head text, PRIMARY KEY (tab, path));
DO $$ BEGIN
  IF (SELECT relowner <> current_user::regrole FROM pg_class WHERE oid = 'sessionfs_changes'::regclass) THEN
    RAISE EXCEPTION 'sessionfs_changes is a table of somebody else, who could run anything as %', current_user;
  END IF;
END $$;
CREATE INDEX IF NOT EXISTS sessionfs_changes_xact ON sessionfs_changes (tab, xact);
CREATE OR REPLACE FUNCTION sessionfs_change() RETURNS trigger
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  gone text := ''; -- after TRUNCATE
  there text;
  head text;
BEGIN
  IF TG_LEVEL = 'ROW' THEN
    gone := nullif(OLD.path, NEW.path);
    there := NEW.path;
    head := substring(NEW.content FROM 1 FOR BYTES);
  END IF;
  INSERT INTO sessionfs_changes AS c
    SELECT TG_RELID, v.path, pg_current_xact_id(), pg_current_xact_id()::xid, v.head
    FROM (VALUES (gone, NULL), (there, head)) v (path, head) WHERE v.path IS NOT NULL
    ON CONFLICT (tab, path) DO UPDATE SET xact = excluded.xact, version = excluded.version, head = excluded.head;
  RETURN NULL;
EXCEPTION WHEN OTHERS THEN
  RAISE WARNING 'sessionfs is not told of a change of %: %', TG_RELID::regclass, SQLERRM;
  RETURN NULL;
END $$;
DROP TRIGGER IF EXISTS sessionfs ON SESSIONS; -- of versions that sent notifications
DROP TRIGGER IF EXISTS sessionfs_changes ON SESSIONS;
CREATE TRIGGER sessionfs_changes AFTER INSERT OR UPDATE OR DELETE ON SESSIONS
  FOR EACH ROW EXECUTE FUNCTION sessionfs_change();
DROP TRIGGER IF EXISTS sessionfs_truncated ON SESSIONS;
CREATE TRIGGER sessionfs_truncated AFTER TRUNCATE ON SESSIONS
  FOR EACH STATEMENT EXECUTE FUNCTION sessionfs_change();
ALTER TABLE SESSIONS ENABLE ALWAYS TRIGGER sessionfs_changes, ENABLE ALWAYS TRIGGER sessionfs_truncated;
DO $$
DECLARE reader text;
BEGIN -- Who may read the one table may read the other.
  FOR reader IN SELECT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END
    FROM pg_class, aclexplode(relacl) WHERE oid = 'SESSIONS'::regclass AND privilege_type = 'SELECT'
  LOOP
    EXECUTE 'GRANT SELECT ON sessionfs_changes TO ' || reader;
  END LOOP;
END $$;
COMMIT;
DO $$
DECLARE
  last text := '';
BEGIN
  LOOP
    WITH part AS MATERIALIZED (
      SELECT path, xmin, substring(content FROM 1 FOR BYTES) AS head
      FROM SESSIONS WHERE path > last ORDER BY path LIMIT 100
    ), noted AS (
      INSERT INTO sessionfs_changes AS c SELECT 'SESSIONS'::regclass, path, '0', xmin, head FROM part
      ON CONFLICT (tab, path) DO UPDATE SET version = excluded.version, head = excluded.head
        WHERE c.version <> excluded.version
    )
    SELECT max(path) INTO last FROM part;
    COMMIT;
    EXIT WHEN last IS NULL;
  END LOOP;
END $$;
RESET search_path;
`

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/ext/fts5"
)

// historySchema is what the client makes (docs/format.md, Prompt history).
const historySchema = `PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;
CREATE TABLE IF NOT EXISTS history (id INTEGER PRIMARY KEY AUTOINCREMENT, prompt TEXT NOT NULL UNIQUE,
	created_at INTEGER NOT NULL DEFAULT (CAST(strftime('%s','now') AS INTEGER)), cwd TEXT, session_id TEXT);
CREATE INDEX IF NOT EXISTS idx_history_created_at ON history(created_at DESC);
CREATE VIRTUAL TABLE IF NOT EXISTS history_fts USING fts5(prompt, content='history', content_rowid='id');
CREATE TRIGGER IF NOT EXISTS history_ai AFTER INSERT ON history BEGIN
	INSERT INTO history_fts(rowid, prompt) VALUES (new.id, new.prompt);
END;`

// historyPause is between two prompts: the history grows slowly, as people type.
const historyPause = 30 * time.Millisecond

// runHistory writes prompts as the client does. What is committed is found in the mounts at once.
func runHistory(o *options) error {
	p, err := start(o)
	if err != nil {
		return err
	}
	db, err := sqlite3.Open(filepath.Join(o.source(), "history.db"))
	if err != nil {
		return err
	}
	defer db.Close()
	if err := fts5.Register(db); err != nil {
		return err
	}
	if err := db.Exec(historySchema); err != nil {
		return err
	}
	d := newDrawer(o)
	for n := 0; !p.stopped.Load(); n++ {
		command := d.next()
		p.prompt(db, n, command)
		time.Sleep(historyPause)
	}
	return p.end()
}

// prompt adds a prompt and searches for it.
func (p *process) prompt(db *sqlite3.Conn, n int, d draw) {
	unique := fmt.Sprintf("unique%dx", n)
	text := fmt.Sprintf("%s word%d %s", unique, n%1000, strings.Repeat("please ", int(d.size%200)))
	var err error
	switch {
	case d.kind%50 == 0: // as the client's databases are maintained
		err = db.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
	case d.kind%50 == 1:
		err = db.Exec("BEGIN; DELETE FROM history WHERE id < 0; ROLLBACK")
	}
	if err == nil {
		err = db.Exec("INSERT INTO history(prompt, cwd) VALUES ('" + text + "', '/torture')")
	}
	if err != nil {
		p.problem("history.db, to which only we write: %v", err)
		return
	}
	p.count("prompt")
	if d.target%4 > 0 {
		return
	}
	mount := d.mountOf()
	_ = p.attempt("search for a prompt", mount, unique, historyErrors, func() error {
		found, err := os.ReadFile(p.mounted(mount, "history/search/"+unique))
		if err == nil && strings.Count(string(found), unique) != 1 {
			p.problem("a search for %s in %s found %q", unique, mount, found)
		}
		return err
	})
}

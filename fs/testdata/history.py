import json, os, select, signal, sqlite3, sys, time
def open_history(path):
    db = sqlite3.connect(path, timeout=0, isolation_level=None)
    db.executescript("""
PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;
CREATE TABLE IF NOT EXISTS history (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	prompt TEXT NOT NULL UNIQUE,
	created_at INTEGER NOT NULL DEFAULT (CAST(strftime('%s','now') AS INTEGER)),
	cwd TEXT,
	session_id TEXT
);
CREATE INDEX IF NOT EXISTS idx_history_created_at ON history(created_at DESC);
CREATE VIRTUAL TABLE IF NOT EXISTS history_fts USING fts5(prompt, content='history', content_rowid='id');
CREATE TRIGGER IF NOT EXISTS history_ai AFTER INSERT ON history BEGIN
	INSERT INTO history_fts(rowid, prompt) VALUES (new.id, new.prompt);
END;""")
    return db
def add(db, prompt, at=1770000000, cwd="/home/dev/p", session=None):
    db.execute("INSERT INTO history(prompt, created_at, cwd, session_id) VALUES (?, ?, ?, ?)"
        " ON CONFLICT(prompt) DO UPDATE SET created_at = excluded.created_at", (prompt, at, cwd, session))
def check(db):
    answer = db.execute("PRAGMA integrity_check").fetchall()
    if answer != [("ok",)]: raise SystemExit("integrity_check: %r" % answer)

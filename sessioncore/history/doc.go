// Package history reads prompt histories: SOURCE/history.jsonl of Claude Code and Codex (Lines),
// and the client's SOURCE/history.db (PromptDatabase). That is a SQLite database in WAL mode with a table
// history(id, prompt, created_at, cwd; from version 18 session_id; from 18.3.4 use_count) and an
// FTS5 index history_fts of the prompts (docs/design.md section 1, history/). The client may be
// writing to it, and its content is untrusted. So this package
//
//   - never creates or changes a file and takes no lock: a reader that follows SQLite's protocol writes to
//     history.db-shm, creates it if it is missing, and can keep a client that exits from cleaning up;
//   - opens only regular files, through the storage, and follows no link;
//   - keeps nothing open and nothing in memory between two reads;
//   - bounds time, memory and size of each read, and survives a panic in the library.
//
// Reading beside a writer. The files are copied into memory, the database first and its log last.
// SQLite reads the copies through our own file system (copies.go), which has no shared memory, with
// locking_mode=EXCLUSIVE. So it builds the index of the log in its own memory, as after a crash,
// and finds the committed state: a page that a writer changed during the copy is also in the copied
// log, which wins. If the log was restarted meanwhile, its header differs, and the files are copied
// again, as they are if a name stands for another file. Without a log, the times of the database
// file show whether it changed.
package history

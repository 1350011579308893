// Package history reads the client's prompt history, SOURCE/history.db: a SQLite database in WAL mode with a
// table history(id, prompt, created_at, cwd), in version 18 session_id too, and an FTS5 index history_fts of the
// prompts (docs/design.md section 1, history/). The database belongs to the client, which may be writing to it, and
// its content is hostile until read. So this package
//
//   - never makes or changes a file and takes no lock: a reader that follows SQLite's protocol writes to
//     history.db-shm, makes it where it is missing, and can keep a client that ends from tidying up;
//   - opens only regular files, through the storage that it is given, and follows no link;
//   - keeps nothing open and nothing in memory between two reads;
//   - bounds time, memory and size of each read, and survives a panic in the library.
//
// Reading beside a writer. The files are pinned at the sizes that they have, and SQLite reads them through a
// file system of ours (vfs.go) that has no shared memory, with locking_mode=EXCLUSIVE: so it makes its index of
// the log in its own memory, from the log alone, as it does after a crash, and finds what is committed. A log is
// written from its start again only under a new header, and the database file changes only when frames of the
// log are copied into it, which writers announce in history.db-shm. So if afterwards the log has its header
// still, and no frame beyond the pinned ones was copied, then what was read is one committed state (pinned.go);
// otherwise it is read again. Where there is no history.db-shm, the times of the database file tell whether it
// changed.
package history

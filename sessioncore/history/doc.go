// Package history reads prompt histories: SOURCE/history.jsonl of Claude Code and Codex (Lines), and the client's,
// SOURCE/history.db: a SQLite database in WAL mode with a table history(id, prompt, created_at, cwd), in version 18
// session_id too and from 18.3.4 on use_count, and an FTS5 index history_fts of the prompts (docs/design.md section 1,
// history/). The database belongs to the client, which may be writing to it, and its content is untrusted. So this
// package
//
//   - never creates or changes a file and takes no lock: a reader that follows SQLite's protocol writes to
//     history.db-shm, creates it if it is missing, and can keep a client that exits from cleaning up;
//   - opens only regular files, through the storage that it is given, and follows no link;
//   - keeps nothing open and nothing in memory between two reads;
//   - bounds time, memory and size of each read, and survives a panic in the library.
//
// Reading beside a writer. The files are copied into memory, the database file first and its log after that, and SQLite
// reads the copies through our own file system (vfs.go), which has no shared memory, with locking_mode=EXCLUSIVE. So it
// builds its index of the log in its own memory, from the log alone, as after a crash, and finds what is committed. A
// page that was copied while a writer put it there comes from a frame of the log, which is in the copy of the log too,
// and pages that are in the log are read from the log: unless the log was written from its start again meanwhile. Then
// it has another header, and the files are copied again, as they are if a name stands for another file. Where there is
// no log, the times of the database file show whether it changed.
package history

// Package promptdb reads the prompt history of omp's client, SOURCE/history.db: a SQLite database in WAL mode with a
// table history(id, prompt, created_at, cwd; from version 18 session_id; from 18.3.4 use_count) and an FTS5
// index history_fts of the prompts (docs/design.md section 1, history/). The client may be writing to it,
// and its content is untrusted. So this package
//
//   - reads it in place by package sqlite, which never creates or changes a file and takes no lock: a reader that
//     follows SQLite's protocol writes to history.db-shm, creates it if it is missing, and can keep a client that
//     exits from cleaning up;
//   - opens only regular files, through the storage, and follows no link;
//   - keeps nothing open and nothing in memory between two reads;
//   - bounds time and memory of each read, and survives a panic in the library.
package promptdb

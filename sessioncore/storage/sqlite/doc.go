// Package sqlite reads SQLite databases that other programs write.
//
// A database is read in place: nothing in its directory is created, changed or locked, so that its
// program never waits, and any user who may read the files can. SQLite's locks keep readers and
// writers apart otherwise, so each transaction here checks that what it read was one state: before
// and after it, the database has the same size and times, and its write-ahead log the same header,
// which two numbers change whenever the log begins anew (SQLite's file format, section 4.1). Frames
// that are appended meanwhile are not read, since a transaction's index of the log ends before them.
package sqlite

// Package postgres keeps session files in a table of PostgreSQL, as omp's SQL storage does: a row is a file
// (docs/format.md, Sessions in a database).
//
// A catalogue of the rows is kept in memory and brought up to date by one SELECT of what changed: of what a trigger has noted,
// where there is one, else of the whole table. The content of a row is
// read once, as far as it is needed and the budget of the mount has room, and grows by its tail. A row is only written
// in the state that was read: its xmin, which PostgreSQL changes with each UPDATE, says which that is.
//
// The package never creates or changes a table, and never removes a row.
package postgres

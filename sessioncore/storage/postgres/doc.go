// Package postgres keeps session files in a table of PostgreSQL, as omp's SQL storage does: a row
// is a file (docs/format.md, Sessions in a database).
//
// A catalogue of the rows is kept in memory. One SELECT brings it up to date: of the changes that a
// trigger recorded, or without a trigger of the whole table. The content of a row is read once, as
// far as it is needed and memory allows, and grows by its tail. A row is written only in the state
// that was read, which its xmin names: PostgreSQL changes that with each UPDATE.
//
// The package never creates or changes a table, and never removes a row.
package postgres

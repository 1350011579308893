// Package storage defines where session files lie: two interfaces, tokens that identify states of a file, errors, and a FIFO
// mutex for implementations. [Files] is what is read, and all that a store needs that is only read; [Journal] is what is
// written. The implementations are subpackages: dir keeps files in a directory, postgres in a table; gzip and redact show the
// files of another store.
//
// The package never looks into a file. Its test is the contract that every implementation passes, in the same two parts.
package storage

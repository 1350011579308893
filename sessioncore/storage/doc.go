// Package storage defines how session files are stored: two interfaces, tokens that identify states
// of a file, errors, and a FIFO mutex for implementations. [Files] reads, [Journal] writes. The
// implementations are subpackages: dir keeps files in a directory, postgres in a table; gzip and
// redact show the files of another store. The examples of [Files] and of dir show tokens.
//
// The package never parses a file. Its test is the contract of every implementation.
package storage

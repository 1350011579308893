// Package storage defines where session files lie: an interface, tokens that identify states of a file, errors, and
// a FIFO mutex for implementations. The implementations are subpackages: dir keeps files in a directory, memory
// keeps them in memory, and pending shows files that are not on disk yet beside those that are.
//
// There is one interface, [Storage]. An implementation embeds [Unsupported] for the methods that it does not have;
// callers simply call a method, and fall back to another way if the error is [ErrUnsupported].
//
// The package never looks into a file. Its test is the contract that every implementation passes.
package storage

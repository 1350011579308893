// Package storage says what sessioncore needs of the place where session files lie: an interface, tokens by
// which one state of a file is told from another, the errors, and a FIFO mutex for implementations. The
// implementations are subpackages: dir keeps files in a directory, memory in memory, and pending shows files
// that are not on disk yet beside those that are.
//
// There is one interface, [Storage]. What an implementation cannot do it leaves to [Unsupported], which it embeds:
// callers ask by calling, and where there is another way they take it after [ErrUnsupported].
//
// It never looks into a file. The contract that every implementation passes is this package's test.
package storage

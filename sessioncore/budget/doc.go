// Package budget bounds the memory that a process takes for its clients (docs/design.md section 7,
// Memory). A [Hold] is memory until a client closes a file or reads an answer: beyond the limit,
// the caller gets [ErrNoMemory]. [Budget.Work] is memory for a moment: beyond its limit, it waits.
// A [Text] is in memory while there is room, else in a nameless temporary file, which only this
// process can open and which vanishes with it.
//
// The package knows no sessions. A nil *Budget has no limits.
package budget

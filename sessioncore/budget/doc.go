// Package budget bounds the memory that a process takes for its clients (docs/design.md section 7,
// Memory). A [Hold] is memory until a client closes a file or reads an answer: beyond the limit,
// the caller gets [ErrNoMemory]. [Budget.Work] is memory for a moment: beyond its limit, it waits.
//
// The package knows no sessions or files. A nil *Budget has no limits.
package budget

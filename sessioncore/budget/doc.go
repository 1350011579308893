// Package budget bounds the memory that a process takes for its clients (docs/design.md section 7, Memory). Memory
// until a client closes a file or reads an answer is a [Hold]: beyond the limit, the caller gets [ErrNoMemory].
// Memory for a moment is [Budget.Work]: beyond its limit, the caller waits for others.
//
// The package knows nothing of sessions or files. A nil *Budget has no limits.
package budget

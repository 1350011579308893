// Package writer makes every change to a session: appended entries, the leaf, labels, the title,
// forks and new sessions. [Writer.Append] has an example.
//
// Each write takes the lock that clients take, reads the current file and checks for live clients
// (docs/design.md section 4). It takes effect completely or not at all. Appended lines are checked
// before the lock is taken, so that clients can read them.
//
// The package does not write to a session that a live client has open unless told to, changes only
// the bytes that a request names, and never leaves a file that no client can open.
package writer

// Package listing finds sessions like the client's list and its --resume: all sessions by time, one
// by a prefix of its id, those of a working directory, the parent of a fork, and the session at an
// absolute path (docs/design.md section 5; docs/format.md, Listing and resuming).
//
// A [Listing] reads only on request, and then only the first 4 KB of files that changed. It never
// indexes a session, and never writes.
package listing

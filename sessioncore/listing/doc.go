// Package listing finds sessions, as the client's list and its --resume do: all sessions by time, one by a prefix of
// its id, those of a working directory, the parent of a fork, and the session at an absolute path (docs/design.md
// section 5; docs/format.md, Listing and resuming).
//
//	found := listing.New(store, "/home/dev/.omp/agent/sessions")
//	sessions, err := found.Sessions(ctx)
//
// A [Listing] reads nothing before it is asked, and then only the first 4 KB of files that changed. It never indexes
// a session, and never writes.
package listing

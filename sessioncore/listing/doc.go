// Package listing finds sessions, as the client's list and its --resume do: all of them by time, one by a beginning of
// its id, those of a working directory, the parent of a fork, and the one that an absolute path means
// (docs/design.md section 5; docs/format.md, Listing and resuming).
//
//	found := listing.New(store, "/home/dev/.omp/agent/sessions")
//	sessions, err := found.Look()
//
// A [Listing] reads nothing before it is asked, and then only the beginnings of files that changed. It never indexes a
// session, and never writes.
package listing

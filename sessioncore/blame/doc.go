// Package blame finds, for the lines of a file, the edits of agents that put them there.
//
// Edits are replayed in the order of their times, on the known parts of the file. Where a person
// changed the file in between, an edit may not apply: its text alone then tells where it went.
package blame

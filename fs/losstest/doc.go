// Package losstest is a loopback file system for tests that records what is done to it, and makes of the record the
// states in which a loss of power could leave the disk: what was synced is there, and of the rest any part that a disk
// could have.
//
// The model is that of POSIX, without what single file systems promise beyond it: fsync of a file makes its content
// durable and not its name, fsync of a directory makes the names in it durable and not their files' content. Changes of
// names in one directory reach the disk in order, as do writes to one file; a write that was not synced may be there in
// part, or as zeros. One promise more is taken, that of file systems with a journal: a rename between two directories is
// on the disk in both of them or in neither, and an fsync of one is one of what both had by then.
package losstest

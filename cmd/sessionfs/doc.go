// Command sessionfs mounts the data directory of a coding agent as a file system.
//
//	sessionfs [-o OPTIONS] [SOURCE] MOUNTPOINT
//	sessionfs --demo MOUNTPOINT
//	sessionfs -u [-z] MOUNTPOINT
//	sessionfs help | version
//
// It returns when the mount is ready; a copy of it, without a terminal, serves the mount until that is unmounted or a
// signal ends it. docs/design.md section 8 says what it promises, exitcodes.go what its exit status means.
//
// It never starts another program but fusermount3 and itself.
package main

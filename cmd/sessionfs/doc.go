// Command sessionfs mounts the data directory of a coding agent as a file system.
//
//	sessionfs [-o OPTIONS] [SOURCE] MOUNTPOINT
//	sessionfs --demo MOUNTPOINT
//	sessionfs -u [-z] MOUNTPOINT
//	sessionfs status [--json] [MOUNTPOINT]
//	sessionfs help | version
//	sessionfs ls | cat | … [-s SOURCE] PATH...
//
// It returns when the mount is ready; a copy of it, without a terminal, serves the mount until that is unmounted or a
// signal ends it. docs/design.md section 8 says what it promises, main.go what its exit status means.
//
// Commands of the last form show the same without a mount; [newRoot] lists them. They build for other systems than Linux.
//
// It never starts another program but fusermount3 and itself; sessionfs pick also fzf and, where it is asked to, the agent, and
// what is read on a terminal goes to a pager.
package main

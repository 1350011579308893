// Package access answers what a user may do with a file by its path: by the mode, the owner and the POSIX access control
// list of the file and of every directory above it. It is for a daemon that serves several users (docs/design.md section
// 8): what it may read itself says nothing about them.
//
// The answer is the kernel's own, except where something is not known, such as the groups of a process that is gone or
// a list of another kind: then it is no. The package never changes a file and never follows a link.
package access

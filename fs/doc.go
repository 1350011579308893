// Package fs assembles a mount: the root directory, the parts of SOURCE behind it, and the life of
// the server, from [Mount] to [Server.Unmount]. It knows the other mounts of this machine too: their
// place in the mount table, their status, and their end by [Unmount].
//
// Package nodes defines the tree of a mount, package sessioncore the sessions. This package answers
// no request of the kernel itself, but recovers from panics in requests.
package fs

// Package fs assembles a mount: the root directory, the parts of SOURCE behind it, and the life cycle of the
// server, from [Mount] to [Server.End].
//
// What the user sees in a mount is in package nodes; what a session is, in package sessioncore. This package
// answers no request of the kernel itself, except that it recovers from panics in those that do.
package fs

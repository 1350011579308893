// Package fs assembles a mount: the root directory, the places of SOURCE behind it, and the server's
// life cycle. What a session looks like is in package nodes.
package fs

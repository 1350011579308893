// Package direct is the door for callers in this process: it shows the nodes of a mount as an
// io/fs.FS, for fs.WalkDir and others, without a mount. [New] has an example.
//
// Each call resolves its path from the root, so that nodes live no longer than a call or an open
// file: a walk of a whole tree takes no more memory than its deepest path.
//
// The package knows nothing of sessions. A link that leads out of the tree is an error.
package direct

// Package nodes is the tree that a mount shows: the directories of SOURCE as they are, the
// directory that shows each session, the ways to find sessions, and the prompt history. A node is a
// [Dir], a [File] or a [Link]; some files are a [Control] too. Nodes hold no content but that of an
// open [Handle].
//
// Nothing here knows a kernel. A door answers its callers from the nodes: package kernel
// answers FUSE, package nfs NFS, package direct this process.
//
// docs/sessionfs.1.md, FILES, has a row for each path, and docs/architecture.md names the code of most.
package nodes

// Package direct makes the requests to a FUSE file system that the kernel would make, in this process and without a
// mount: it looks names up, follows links, lists directories, and reads and writes files.
//
//	files := direct.New(raw, caller)
//	f, err := files.Open(ctx, "recent/01-A title/transcript.md")
//
// What it shows is what the file system answers, so that nothing can differ from a mount of it. A node is forgotten as
// soon as nobody uses it: to walk a whole tree takes no more memory than its deepest path.
//
// It knows nothing of sessions, caches nothing, and never leaves the file system: a link that leads out is an error.
package direct

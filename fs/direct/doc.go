// Package direct makes the requests to a FUSE file system that the kernel would make, in this process and without a
// mount. What it shows is an io/fs.FS, which fs.WalkDir and others take:
//
//	files := direct.New(raw, caller, log)
//	text, err := fs.ReadFile(files, "recent/01-A title/transcript.md")
//
// It shows what the file system answers, so that nothing can differ from a mount of it. A node is forgotten as soon as
// nobody uses it: to walk a whole tree takes no more memory than its deepest path.
//
// It knows nothing of sessions, and never leaves the file system: a link that leads out is an error.
package direct

// Package direct is the door for callers in this process: it shows the nodes of a mount as an
// io/fs.FS, which fs.WalkDir and others take, without a mount:
//
//	files := direct.New(root, log)
//	text, err := fs.ReadFile(files, "recent/01-A title/transcript.md")
//
// A path is resolved from the root for each call, so nodes are kept no longer than a call or an
// open file: to walk a whole tree takes no more memory than its deepest path.
//
// It knows nothing of sessions, and never leaves the tree: a link that leads out is an error.
package direct

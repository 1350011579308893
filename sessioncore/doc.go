// Package sessioncore is the model of a coding agent's sessions. A session is a file to which
// entries are appended, one JSON object each. Entries name their parent and so form a tree; the
// leaf is the entry at which the conversation stands. docs/format.md describes the files.
//
// # Reading
//
// A [Store] hands out the sessions of a [storage.Storage]. [Session.Acquire] returns a [Snapshot]
// of the file as it is now. This costs one stat if the file has not changed; if it has grown, only
// the new part is read. [Snapshot.Context] has an example.
//
// A snapshot is immutable and safe for concurrent use. It is an index of an open file and holds no
// content, so a session takes some tens of bytes of memory per entry. An [Entry] is a number in
// that index. A rendering (a context, a list of problems) is a document.Document: its size is known
// in advance, and its bytes are read from the file on demand.
//
// The file may change while it is read. If it only grew, readers of a snapshot go on reading the
// old part. If it was overwritten in place, they get [storage.ErrStale], never a mixture of two
// versions.
//
// # Users
//
// Package writer changes sessions, package listing finds them, package view renders them, package
// report computes costs and finds secrets, and package clients reports which clients have one open.
// Package storage stores the files.
//
// # Limits
//
// The package never imports FUSE, follows a symbolic link below a storage's root, changes a file in
// order to read it, or keeps the content of a session. Errors wrap the sentinel errors of this
// package or those of the storage.
package sessioncore

// Package sessioncore is the model of a coding agent's sessions. A session is a file to which entries are
// appended, a JSON object each; entries name their parent and so form a tree; the leaf is the entry at which
// the conversation stands. docs/format.md describes the files.
//
// # Reading
//
// A [Store] hands out the sessions of a [Storage]. [Session.Acquire] returns a [Snapshot]: what the file is
// at that moment. It costs a stat if the file is as it was, and reads what was added if it has grown.
//
//	snap, err := store.Session("project/2026-02-16T10-20-30-000Z_1f9d.jsonl").Acquire()
//	if err != nil {
//		return err
//	}
//	defer snap.Release()
//	leaf, err := snap.Leaf()
//	if err != nil {
//		return err
//	}
//	doc, err := snap.Context(leaf, nil)
//	if err != nil {
//		return err
//	}
//	defer doc.Close()
//	_, err = io.Copy(os.Stdout, io.NewSectionReader(doc, 0, doc.Size()))
//
// A snapshot is immutable and safe for concurrent use. It is an index of an open file and holds no content, so a
// session of any size takes some tens of bytes for each entry. An [Entry] is a number in it. What is rendered
// (a context, a list of problems) is a [Document], whose size is known and whose bytes are read from the
// file when somebody reads them.
//
// The file may change while it is read. What only grew goes on to be read as it was; what was overwritten in
// place gives [ErrStale], never a mixture of two versions.
//
// # What builds on it
//
// Package writer changes sessions, package listing finds them, package transcript renders one for a person, and package
// clients tells who has one open. Package storage says where files lie.
//
// # What it never does
//
// It never imports FUSE, follows a symbolic link below a storage's root, changes a file in order to read it,
// or keeps the content of a session that is on disk. Errors wrap the sentinels of this package, or what the storage
// says.
package sessioncore

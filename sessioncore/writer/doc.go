// Package writer makes every change to a session: appended entries, the leaf, labels, the title, forks and new
// sessions.
//
//	w := writer.New(store, writer.Options{Journal: files, Root: "/home/dev/.omp/agent/sessions"})
//	ids, err := w.Append(ctx, store.Session(name), []byte(`{"type":"custom","customType":"note"}`))
//
// Each write takes the lock that clients take, reads the file as it is then and checks for live clients
// (docs/design.md section 4). It takes effect completely or not at all. Before it takes the lock it checks that
// clients can read what is appended.
//
// The package does not write to a session that a live client has open unless told to, never changes bytes that it was
// not asked to change, and never leaves a file behind that no client can open.
package writer

// Package writer makes every change to a session: appended entries, the leaf, labels, the title, forks and new sessions.
//
//	w := writer.New(store, writer.Options{Root: "/home/dev/.omp/agent/sessions"})
//	ids, err := w.Append(ctx, store.Session(name), []byte(`{"type":"custom","customType":"note"}`))
//
// Each write is made under the lock that clients take, at the file as it is then, after a look for live clients
// (docs/design.md section 4), and takes effect as a whole or not at all. What is appended is held against what clients
// can read before anything is locked.
//
// It never writes to a session on which a live client is unless it is told to, never changes bytes that it was not
// asked to change, and never leaves a file behind that no client can open.
package writer

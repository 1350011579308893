// Package report makes the files that tell something about a session as a whole: usage.json, what it cost, and
// secrets.jsonl, where keys and tokens are in it (docs/design.md section 1).
//
//	doc, err := report.Usage(ctx, snapshot, leaf, nil, prices)
//
// Its functions are functions over the model: they read a snapshot and return a document. What takes reading the
// entries is kept with the session (Snapshot.Shared), so that only what was added is read again.
//
// It changes nothing, and never shows a secret or a part of one.
package report

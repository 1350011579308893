// Package report makes the files that tell something about a session as a whole, such as usage.json, problems.jsonl,
// branches.tsv and secrets.jsonl (docs/design.md section 1), and those about all sessions, usage.jsonl and lost.tsv.
//
//	doc, err := report.Usage(ctx, snapshot, leaf, nil, prices, report.Sum{})
//	text, err := report.NewCosts(store, prices).Lines(ctx, sessions, &hold)
//
// What takes reading the entries of a session is kept with it (Snapshot.Shared), so that only what was added is read again.
// The package changes nothing, and never shows a secret or a part of one.
package report

// Package report makes the files about a session as a whole, such as usage.json, problems.jsonl,
// branches.tsv and secrets.jsonl (docs/design.md section 1), and those about all sessions,
// usage.jsonl and lost.tsv.
//
// Usage and Problems are about one session; NewCosts is about all.
//
// Facts of the entries are kept with a session (Snapshot.Shared), so that only new entries are
// read. The package changes nothing, and never shows a secret or a part of one.
package report

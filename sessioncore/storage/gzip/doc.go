// Package gzip shows the session files of another storage whether they are compressed or not: X.jsonl.gz, as clients
// archive sessions (docs/format.md, omp after 18.2.3), is X.jsonl, with the size and the bytes of what is in it; and so is
// X.jsonl.zst, as Codex compresses rollouts.
// Nothing can be written.
//
// To look at the beginning of a file costs no more than that. Who reads further has the whole file unpacked, once, and
// what was unpacked is kept for a while: a small file in memory, a large one in a file without a name in the directory
// for temporary files.
package gzip

// Package gzip shows compressed session files as uncompressed ones: X.jsonl.gz, as clients archive
// sessions (docs/format.md, omp after 18.2.3), and X.jsonl.zst, as Codex compresses rollouts, are
// X.jsonl with its size and bytes. Nothing can be written.
//
// The beginning of a file is unpacked by itself. A read beyond it unpacks the file once and keeps
// the text for a while, in memory or in a nameless temporary file.
package gzip

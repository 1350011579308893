// Package history reads prompt histories: SOURCE/history.jsonl of Claude Code and Codex (Lines), the files of other
// agents (Files), and those of several agents together (Several). Package promptdb reads omp's.
package history

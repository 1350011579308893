// Package claude shows the sessions of Claude Code as session files (docs/format.md, Claude Code): it makes their lines of
// its records, and tells which of its files are sessions.
package claude

// Name is what the agent is called, by omp's own import too.
const Name = "claude"

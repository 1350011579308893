// Package claude shows the sessions of Claude Code as session files (docs/format-claude.md).
package claude

// Name is the agent's name, also in omp's own import.
const Name = "claude"

// Package codex shows the rollouts of Codex as session files (docs/format.md, Codex): it makes their lines of those of a
// rollout, and tells which of its files are rollouts.
package codex

// Name is what the agent is called, by omp's own import too.
const Name = "codex"

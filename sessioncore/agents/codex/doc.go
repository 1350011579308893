// Package codex shows the rollouts of Codex as session files (docs/format-codex.md).
package codex

// Name is the agent's name, also in omp's own import.
const Name = "codex"

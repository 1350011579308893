// Package codex shows the rollouts of Codex as session files (docs/format.md, Codex).
package codex

// Name is the agent's name, also in omp's own import.
const Name = "codex"

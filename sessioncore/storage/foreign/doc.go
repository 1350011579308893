// Package foreign shows the sessions of another agent as session files: what makes them of its records (Converter) is the
// agent's, when that is done and what is kept of it is told here (docs/format.md, Claude Code; Codex).
//
// Builder does for an agent all but the reading of its records.
//
// A session is converted when somebody reads it, and what its file has more later is added then. Nothing is written.
package foreign

// Package foreign shows the sessions of another agent as session files (docs/format.md, Claude
// Code; Codex). The agent's Converter makes the lines; the package decides when, and keeps them.
// Builder does for an agent all but the reading of its records.
//
// A session is converted when it is read, and extended when its file has grown. Nothing is written.
package foreign

// Package copilot shows the sessions of GitHub Copilot CLI as session files (docs/format-copilot.md): it
// makes their lines of its events, and tells which of its files are sessions.
package copilot

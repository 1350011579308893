// Package lost finds, in all sessions, the ends of branches that no client shows which resumes a session (docs/design.md
// section 5).
package lost

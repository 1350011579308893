// Package pending shows session files that are kept in memory beside those of another storage, and later puts them
// there: a new session is not on disk before its first answer (docs/design.md section 2, new-session).
package pending

// Package pending shows session files that wait in memory beside those of another storage, and puts them there
// when their time has come: a new session is not on disk before its first answer (docs/design.md section 2,
// new-session).
package pending

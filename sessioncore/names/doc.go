// Package names converts ids, labels and titles to file names and back (docs/design.md section 1, Names). It knows
// nothing of sessions.
package names

// Package names converts ids, labels and titles to file names and back (docs/design.md section 1, Names), and to fields
// of a line; and to the names of leases. It knows nothing of sessions.
package names

// Package names converts ids, labels and titles to file names and back (docs/design.md section 1, Names), and to fields
// of a line, and to the names of leases; and it writes the title slot. It knows nothing else of sessions.
package names

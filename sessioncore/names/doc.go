// Package names converts ids, labels and titles to file names and back (docs/design.md section 1,
// Names), to fields of a line and to the names of leases, and writes the title slot.
package names

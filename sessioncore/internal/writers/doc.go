// Package writers finds out whether a process has a file open for writing: by asking for a read lease, which the
// kernel refuses exactly then, or by looking through /proc.
//
// It never opens a file, and never waits.
package writers

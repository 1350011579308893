// Package procfs reads /proc: which process has a file open for writing, and single fields of its files.
//
// It never opens another program's file, and waits for no program: see Look.
package procfs

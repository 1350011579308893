// Package procfs reads /proc: the processes that have a file open for writing, and other values.
package procfs

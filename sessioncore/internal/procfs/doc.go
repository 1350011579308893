// Package procfs reads /proc: which process has a file open for writing, and single values of its files.
package procfs

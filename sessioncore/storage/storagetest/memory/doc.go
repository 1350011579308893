// Package memory keeps session files in memory, for tests.
package memory

// Package memory keeps session files in memory, with the same contract as package dir. It is for new sessions that
// are not on disk yet, and for tests.
package memory

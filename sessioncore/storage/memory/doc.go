// Package memory keeps session files in memory, by the contract of package dir: for new sessions that are not on
// disk yet, and for tests.
package memory

// Package dir keeps session files in a directory of the local file system: reads that never leave it, appends
// and replacements that take effect as a whole or not at all, the client's lock, and the look for programs that
// have a file open for writing. A Storage is what stands at its path, not what was opened there once.
//
// It never looks into a file but at its last byte.
package dir

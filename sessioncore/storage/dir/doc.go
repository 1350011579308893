// Package dir stores session files in a directory of the local file system. Reads never leave the
// directory, appends and replacements take effect completely or not at all, locks are the client's,
// and Writers detects programs that have a file open for writing. A [Storage] is the current
// directory at its path, not the one that was opened.
//
// The package does not parse session files. It reads them for its callers, to undo a write, and to
// save lines appended to a file during its replacement.
package dir

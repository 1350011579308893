// Package dir stores session files in a directory of the local file system. Reads never leave the directory, appends
// and replacements take effect completely or not at all, locks are the client's, and Writers detects programs that
// have a file open for writing. A [Storage] is what is currently at its path, not what was opened there once.
//
// The package knows nothing about the contents of session files. It reads them only for its callers, to undo a write,
// and to carry over what is appended to a file while it is replaced.
package dir

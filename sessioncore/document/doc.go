// Package document represents the generated files of a mount as lists of pieces: ranges of a
// session file, blobs, literal text, and text that is made when it is read. Package sessioncore and
// the packages above it add the pieces; this one knows nothing of entries.
package document

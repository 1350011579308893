// Package document has the generated files of a mount as lists of pieces: ranges of a session file, blobs, literal text,
// and text that is made when it is read. It knows nothing of entries; package sessioncore and the functions over it add
// the pieces.
package document

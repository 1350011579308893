// Package renames finds the files that a command of a shell moves, by its text alone.
//
// It never guesses. A command that is not plain, such as one with a variable or a pattern in its names,
// moves nothing that is known. Reading ends where the text needs a shell to be understood.
package renames

// Package persist applies the size controls with which clients write lines (docs/format.md, Persisting): long strings are
// cut, images go into blobs, and what is not to be kept is left out.
package persist

// Package persist applies the size controls of clients to lines (docs/format.md, Persisting): it
// cuts long strings, moves images into blobs, and drops members.
package persist

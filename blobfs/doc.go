// Package blobfs is the blob store: files named after the SHA-256 of their content, to which the image
// blocks of sessions refer (docs/format.md, Persisting).
//
// [Store.Open] and [Store.Size] serve readers of sessions, [Store.Put] serves writers. Put writes a blob to a
// temporary file, syncs it and renames it, so that a blob is complete once it has its name.
//
// The package never opens a file whose name is not a SHA-256, never changes a complete blob, and never removes
// one. Open does not verify the content; Put does, of a blob that exists.
package blobfs

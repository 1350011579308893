// Package blobfs is the store of blobs: files named after the SHA-256 of their content, to which the image
// blocks of sessions refer (docs/format.md, Persisting).
//
// [Store.Open] and [Store.Size] serve readers of sessions, [Store.Put] serves writers. What Put
// stores is whole when it has its name: it is written under another one, made durable, and renamed.
//
// It never opens a file whose name is not a SHA-256, never changes a blob that is whole, and never removes
// one. It does not verify what it reads: [Store.Verify] does.
package blobfs

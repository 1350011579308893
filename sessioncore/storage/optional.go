package storage

import "context"

// The interfaces below are optional, as in io/fs: an object or a storage that has more to offer
// than Object and Storage implements one of them, and a caller that can use it asks.

// StatUntilObject is an object whose Stat may take long, and ends when a context is done.
type StatUntilObject interface {
	Object
	StatUntil(ctx context.Context) (Stat, error)
}

// PackedObject is an object that is compressed in its file.
type PackedObject interface {
	Object
	// Packed returns the size of the file.
	Packed() int64
}

// JoinedObject is an object that has the text of several files, or a part of one.
type JoinedObject interface {
	Object
	// Joined returns by how much the text is longer than the file: negative for a part of it.
	Joined() int64
}

// DescriptorObject is an object that is an open file of this process.
type DescriptorObject interface {
	Object
	Fd() uintptr
}

// HardLinker is a storage whose files can have a second name.
type HardLinker interface {
	HardLink(name, second string) error
}

// Toucher is a storage that can give a file the time of now.
type Toucher interface {
	Touch(name string) error
}

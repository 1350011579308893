package storage

import "context"

// The interfaces below are optional, as in io/fs: an object or a storage that has more to offer
// than Object and Storage implements one of them, and a caller that can use it asks.

// StatUntilObject is an object with a Stat that may take long, and ends when a context is done.
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

// HardLinker is a storage that can give files a second name.
type HardLinker interface {
	HardLink(name, second string) error
}

// Toucher is a storage that can give a file the time of now.
type Toucher interface {
	Touch(name string) error
}

// TabledObject is an object that is made of rows in a table with those of others.
type TabledObject interface {
	Object
	// Table returns the table, nil if all its rows cannot be read at once.
	Table() Table
}

// Table has the rows of many objects. It is comparable: equal Tables have the same rows.
type Table interface {
	// Lacking reads all rows in one state. It returns a function that reports whether a TabledObject of the table,
	// in its present state, certainly has no text for which has is true. Where the rows cannot be read at once,
	// that is false for all objects. The error is the one of ctx.
	Lacking(ctx context.Context, has func(text []byte) bool) (lacks func(Object) bool, err error)
}

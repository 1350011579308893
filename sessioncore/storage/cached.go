package storage

// Cached is a value that was read from a file in one state. The zero Cached has no value.
type Cached[T any] struct {
	Value  T
	Token  Token // of the state
	ReadAt int64 // a time before the value was read, in ns since the epoch; 0 for no value
}

// IsOf reports whether the value is of the file's state now: the token is the same, and shows each change
// since the value was read.
func (c *Cached[T]) IsOf(now Token) bool {
	return c.ReadAt != 0 && c.Token == now && !now.Racy(c.ReadAt)
}

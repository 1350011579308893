//go:build race

package history

// everyUse is how many uses of a file a test goes on by: the race detector takes time.
const everyUse = 5

//go:build !race

package history

// everyUse is how many uses of a file a test goes on by.
const everyUse = 1

//go:build race

package history

import "testing"

// oneGoroutine skips a test in which nothing can race: SQLite is fifty times slower under the race detector.
func oneGoroutine(t *testing.T) { t.Skip("there is one goroutine only") }

// fewerBy is by how much a test does less: the race detector takes time.
const fewerBy = 5

package sessiontest

import "testing"

// NotUnderRace skips a test that has one goroutine and takes long with the race detector. scripts/test runs it without.
func NotUnderRace(t testing.TB) {
	t.Helper()
	if UnderRace {
		t.Skip("it has one goroutine, and takes long with the race detector")
	}
}

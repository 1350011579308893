//go:build !race

package sessiontest

// UnderRace reports whether the race detector is on, which makes some tests ten times slower: those that look at large
// texts from one goroutine leave them to the runs without it.
const UnderRace = false

//go:build race

package nodes

// raceEnabled: the race detector takes time of its own.
const raceEnabled = true

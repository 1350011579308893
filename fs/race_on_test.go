//go:build race

package fs_test

// raceEnabled: the race detector takes memory and time of its own.
const raceEnabled = true

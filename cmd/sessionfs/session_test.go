//go:build linux

package main

// The sessions of the sample store that tests name.
const (
	hourLate = "019d3d96-6b66-7996-8ead-42aae5653abc"
	hourFile = "sessions/--home-dev-tidetable--/2026-03-30T07-12-41-318Z_" + hourLate
)

//go:build !linux

package nodes

// mkdirCalls are none, as there are no mounts.
var mkdirCalls []string

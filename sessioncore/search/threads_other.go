//go:build !linux

package search

const canLowerPriority = false

func lowerPriority() {}

func isMainThread() bool { return false }

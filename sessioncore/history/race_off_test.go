//go:build !race

package history

import "testing"

func oneGoroutine(*testing.T) {}

const fewerBy = 1

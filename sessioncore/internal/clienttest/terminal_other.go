//go:build !linux

package clienttest

import (
	"os"
	"testing"
)

// Terminal skips the test: clients derive terminal ids from Linux's pseudo terminals.
func Terminal(t *testing.T) (tty *os.File, id string) {
	t.Skip("no pseudo terminals under /dev/pts")
	return nil, ""
}

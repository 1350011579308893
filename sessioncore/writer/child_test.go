package writer

import (
	"testing"

	"sessionfs/sessioncore/internal/childtest"
	"sessionfs/sessioncore/internal/clienttest"
)

// TestChild is no test but the other process.
func TestChild(*testing.T) {
	childtest.Run(map[string]func(args []string) error{"client": clienttest.Child, "stray": childStrayWriter, "lease": childLease})
}

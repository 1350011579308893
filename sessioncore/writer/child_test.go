package writer

import (
	"testing"

	"sessionfs/sessioncore/internal/childtest"
	"sessionfs/sessioncore/internal/clienttest"
)

// TestChild is not a test: it is the main function of the child process.
func TestChild(*testing.T) {
	childtest.Run(map[string]func(args []string) error{"client": clienttest.Child, "stray": childStrayWriter, "lease": childLease, "locked": childLockedWriter})
}

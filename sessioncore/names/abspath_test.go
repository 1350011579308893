package names

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAbsPath: paths as clients of each system write them.
func TestAbsPath(t *testing.T) {
	for name, want := range map[string]string{
		`/a/../b//c`: "/b/c", "/": "/",
		`C:\Users\Ada`: "win /C:/Users/Ada", `c:/Users/../x`: "win /C:/x", `/C:\Users/Ada`: "win /C:/Users/Ada", `/c:/`: "win /C:",
		`\\?\C:\a`: "win /C:/a", `\\host\share\a`: "win /host/share/a", `/\\host\b`: "win /host/b", `C:\..\..\a`: "win /C:/a",
		``: "", `a`: "", `./a`: "", `C:a`: "", `C:`: "", `1:\a`: "", `\a`: "", `~/a`: "", `ü:\a`: "",
	} {
		clean, windows, ok := AbsPath(name)
		require.Equal(t, want != "", ok, name)
		if windows {
			clean = "win " + clean
		}
		require.Equal(t, want, clean, name)
	}
}

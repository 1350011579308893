//go:build linux

package view

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestStrangeSite: a directory whose list of pages is no file, or has no end, is no site.
func TestStrangeSite(t *testing.T) {
	for name, leave := range map[string]func(at string) error{
		"pipe":  func(at string) error { return unix.Mkfifo(at, 0o600) },
		"zero":  func(at string) error { return os.Symlink("/dev/zero", at) },
		"large": func(at string) error { return os.WriteFile(at, nil, 0o600) },
	} {
		dir := t.TempDir()
		at := filepath.Join(dir, SiteFile)
		require.NoError(t, leave(at))
		if name == "large" {
			require.NoError(t, os.Truncate(at, 1<<40))
		}
		_, err := OpenSite(nil, dir, false)
		require.ErrorContains(t, err, "choose an", name)
	}
}

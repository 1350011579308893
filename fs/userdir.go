package fs

import (
	"os"
	"path/filepath"
)

// userDir returns the directory of this program among the files of a user of some kind: that which a variable of the
// XDG base directories names, else usual in the home directory. The error is that there is no home.
func userDir(variable, usual string) (string, error) {
	base := os.Getenv(variable)
	if !filepath.IsAbs(base) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		base = filepath.Join(home, usual)
	}
	return filepath.Join(base, "sessionfs"), nil
}

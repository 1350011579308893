package fs

import (
	"os"
	"path/filepath"
)

// userDir returns this program's directory for a kind of the user's files: in the directory of an
// XDG variable, else of usual in the home directory. The error means that there is no home.
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

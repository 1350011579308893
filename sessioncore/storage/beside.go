package storage

import (
	"path"
	"strings"
)

// BesideOf returns the path of the directory beside a file, which is called like the file without suffix. It need not
// exist.
//
// While a file is moved, and if the process is killed in the middle of that, the directory is at the file's new place
// already and a link leads there (Move). Such a link is the only one that is ever followed: it leads to a directory of
// the same name, below the storage's root, beside which there is no such file.
func BesideOf(files Files, name, suffix string) string {
	dir := strings.TrimSuffix(name, suffix)
	st, err := files.Stat(dir)
	if err != nil || st.Kind != KindLink {
		return dir
	}
	to := path.Join(Dir(dir), st.Link)
	if path.IsAbs(st.Link) || to == dir || path.Base(to) != path.Base(dir) || CheckName(to) != nil {
		return dir
	}
	if st, err := files.Stat(to); err != nil || st.Kind != KindDir {
		return dir
	}
	if _, err := files.Stat(to + suffix); !IsMissing(err) {
		return dir
	}
	return to
}

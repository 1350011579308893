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
func BesideOf(files Storage, name, suffix string) string {
	dir := strings.TrimSuffix(name, suffix)
	if st, err := files.Stat(dir); err != nil || st.Kind != KindLink {
		return dir
	}
	if to, ok := movedTo(files, dir, suffix); ok {
		return to
	}
	return dir
}

// movedTo returns where the link dir leads, if it is one of a move.
func movedTo(files Storage, dir, suffix string) (to string, ok bool) {
	target, err := files.Readlink(dir)
	if err != nil || path.IsAbs(target) {
		return "", false
	}
	to = path.Join(Dir(dir), target)
	if to == dir || path.Base(to) != path.Base(dir) || CheckName(to) != nil {
		return "", false
	}
	if st, err := files.Stat(to); err != nil || st.Kind != KindDir {
		return "", false
	}
	_, err = files.Stat(to + suffix)
	return to, IsMissing(err)
}

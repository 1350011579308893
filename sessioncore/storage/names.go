package storage

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// CheckName returns ErrBadName for names that could lead out of the root or that cannot name a file.
func CheckName(name string) error {
	if name == "" || !fs.ValidPath(name) && !validBytes(name) || strings.IndexByte(name, 0) >= 0 {
		return fmt.Errorf("%w: %q", ErrBadName, name)
	}
	return nil
}

// validBytes is fs.ValidPath for names that are not UTF-8, which directories may contain.
func validBytes(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." {
			return false
		}
	}
	return true
}

// Dir returns the directory of a name, "" for the root.
func Dir(name string) string {
	dir, _ := path.Split(name)
	return strings.TrimSuffix(dir, "/")
}

// TemporaryName returns a random name for a temporary file beside base. Readers of the directory recognize it as a
// temporary of the client (docs/format.md, Files), and IsTemporaryName as one of ours.
func TemporaryName(base string) string { return temporaryName(base, temporaryMark) }

// AsideName returns a random name for a file that must not be taken for a temporary one of ours.
func AsideName(base string) string { return temporaryName(base, asideMark) }

// temporaryMark begins the digits of our temporary files. The client's are at random.
const temporaryMark, asideMark = "5e5510", "a51de0"

func temporaryName(base, mark string) string {
	var random [5]byte
	_, _ = rand.Read(random[:]) // never fails
	return "." + base + "." + mark + hex.EncodeToString(random[:]) + ".tmp"
}

// IsTemporaryName reports whether base is a name that TemporaryName made.
func IsTemporaryName(base string) bool { return isTemporary(base, temporaryMark) }

// IsOwnName reports whether base is a name that TemporaryName or AsideName made.
func IsOwnName(base string) bool { return IsTemporaryName(base) || isTemporary(base, asideMark) }

func isTemporary(base, mark string) bool {
	base, ok := strings.CutSuffix(base, ".tmp")
	at := strings.LastIndexByte(base, '.')
	return ok && at > 0 && base[0] == '.' && len(base)-at-1 == len(mark)+10 && strings.HasPrefix(base[at+1:], mark)
}

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

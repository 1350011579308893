package names

import (
	"path"
	"strings"
)

// AbsPath returns the clean POSIX form of an absolute path that a client wrote on any system: C:\a
// of Windows becomes /C:/a, and \\host\share /host/share. windows reports a path of Windows, where
// names ignore case. ok is false if the path is not absolute.
func AbsPath(name string) (clean string, windows, ok bool) {
	below := strings.TrimPrefix(name, "/") // as in by-file/
	rest := strings.TrimPrefix(below, `\\?\`)
	switch {
	case isDrive(rest):
		return drivePath(rest), true, true
	case strings.HasPrefix(below, `\\`):
		return path.Clean("/" + strings.ReplaceAll(rest, `\`, "/")), true, true
	case path.IsAbs(name):
		return path.Clean(name), false, true
	}
	return "", false, false
}

// isDrive reports whether a path begins with a drive of Windows. "C:a" does not: a colon can also
// be part of a name.
func isDrive(name string) bool {
	if len(name) < len(`C:\`) || name[1] != ':' {
		return false
	}
	isSlash := name[2] == '\\' || name[2] == '/'
	letter := name[0] | ' '
	isLetter := 'a' <= letter && letter <= 'z'
	return isSlash && isLetter
}

// drivePath returns the POSIX form of a path that begins with a drive.
func drivePath(name string) string {
	below := path.Clean(strings.ReplaceAll(name[2:], `\`, "/"))
	return "/" + strings.ToUpper(name[:1]) + ":" + strings.TrimSuffix(below, "/")
}

package nodes

import (
	"path"
	"strings"
)

// sessionSuffix ends the names of session files.
const sessionSuffix = ".jsonl"

// hidden reports whether a name of SOURCE is one of the client's lock and temporary files: they come
// and go and are not shown (docs/format.md, Files).
func hidden(name string) bool {
	if rest, ok := strings.CutPrefix(name, "."); ok {
		if base, ok := strings.CutSuffix(rest, ".lock"); ok && strings.HasSuffix(base, sessionSuffix) {
			return true
		}
		if base, ok := strings.CutSuffix(rest, ".tmp"); ok {
			return hexAfterSession(base)
		}
	}
	if base, ok := strings.CutSuffix(name, ".bak"); ok {
		return hexAfterSession(base)
	}
	return false
}

// hexAfterSession reports whether base is X.jsonl.<hex>.
func hexAfterSession(base string) bool {
	at := strings.LastIndexByte(base, '.')
	return at > 0 && at < len(base)-1 && strings.HasSuffix(base[:at], sessionSuffix) &&
		strings.Trim(base[at+1:], "0123456789abcdefABCDEF") == ""
}

// sessionName returns the name that a session file's directory has beside it; ok is false for names
// that are no session's: the client lists no hidden files.
func sessionName(file string) (name string, ok bool) {
	name, ok = strings.CutSuffix(file, sessionSuffix)
	return name, ok && name != "" && name[0] != '.'
}

// join puts a name behind a directory's path in a storage, where "" is the root.
func join(dir, name string) string { return path.Join(dir, name) }

package layout

import (
	"fmt"
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
)

// Sessions is the directory of the mount in which the session files lie.
const Sessions = "sessions"

// Archive is the directory of the mount in which the archived session files lie.
const Archive = "archive"

// SessionSuffix ends the names of session files.
const SessionSuffix = ".jsonl"

// ArchiveSuffix comes after SessionSuffix where a session is archived.
const ArchiveSuffix = ".gz"

// ErrLeadsNowhere is the error for a path that leads to no session.
var ErrLeadsNowhere = fmt.Errorf("%w: the path leads to no session", sessioncore.ErrNotFound)

// SessionDir returns the directory that shows a session file.
func SessionDir(file string) string { return strings.TrimSuffix(file, SessionSuffix) }

// SessionName returns the name that a session file's directory has beside it; ok is false for names
// that are no session's: the client lists no hidden files.
func SessionName(file string) (name string, ok bool) {
	name, ok = strings.CutSuffix(file, SessionSuffix)
	return name, ok && name != "" && name[0] != '.'
}

// Hidden reports whether a name of SOURCE is one of the client's lock and temporary files, or of ours: they come
// and go and are not shown (docs/format.md, Files).
func Hidden(name string) bool {
	if storage.IsOwnName(name) {
		return true
	}
	if rest, ok := strings.CutPrefix(name, "."); ok {
		if base, ok := strings.CutSuffix(rest, ".lock"); ok && strings.HasSuffix(base, SessionSuffix) {
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
	return at > 0 && at < len(base)-1 && strings.HasSuffix(base[:at], SessionSuffix) &&
		strings.Trim(base[at+1:], "0123456789abcdefABCDEF") == ""
}

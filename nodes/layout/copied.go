package layout

import (
	"path"
	"regexp"
	"strings"
)

// Copied is what a name below sessions/ stands for when a file is copied there.
type Copied uint8

// The values of Copied.
const (
	NotCopied       Copied = iota // no file is copied there
	CopiedSession                 // a session
	CopiedArtifact                // what lies beside a session: tool output, and subagents' sessions
	CopiedTemporary               // a copy that is renamed when it is whole
)

var (
	// withTime is a name like those of the directories beside session files.
	withTime = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d[^.~]*$`)
	// temporary is a name under which a program copies what it then renames: .X.AbCdEf of rsync, and X.part,
	// X.partial or X.<letters>.partial of others.
	temporary = regexp.MustCompile(`^\..+\.[A-Za-z0-9]{6}$|^[^.].*\.(part|partial)$`)
)

// IsBeside reports whether a directory below sessions/ is one of a session's artifacts, by its path.
func IsBeside(dir string) bool {
	return strings.Contains(dir, "/") || dir != "" && withTime.MatchString(path.Base(dir))
}

// CopiedAs returns what a file is that is copied to a name in a directory, "" for sessions/ itself. beside says that the
// directory is known to be the one beside a session. Where that is not known, as its session may come later, it is one
// that lies in the directory of a project, or whose name has a time.
func CopiedAs(dir, name string, beside bool) Copied {
	deep := strings.Count(dir, "/") > 1
	beside = beside || IsBeside(dir)
	switch isSession := strings.HasSuffix(name, SessionSuffix); {
	case Hidden(name):
		return NotCopied
	case temporary.MatchString(name):
		return CopiedTemporary
	case name[0] == '.':
		return NotCopied
	case isSession && beside:
		return CopiedArtifact
	case isSession:
		return CopiedSession
	case beside && (deep || strings.Contains(name, ".") && !strings.HasSuffix(name, "~")): // no editor's temporary file
		return CopiedArtifact
	}
	return NotCopied
}

// MayMakeDir reports whether a directory of that name can be made in a directory, "" for sessions/ itself: one for a
// project, one that may be beside a session, or one below that.
func MayMakeDir(dir, name string, beside bool) bool {
	if name[0] == '.' || strings.HasSuffix(name, "~") || Hidden(name) {
		return false
	}
	return dir == "" || beside || strings.Contains(dir, "/") || withTime.MatchString(name) || withTime.MatchString(dir)
}

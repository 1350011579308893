package layout

import (
	"context"
	"strings"

	"sessionfs/sessioncore/storage"
)

// Directory is a directory of the mount in which sessions are found: its names are links to sessions, or directories
// of the same sort. What it holds is computed at each call.
type Directory interface {
	// Stat returns its owner and times.
	Stat(ctx context.Context) (storage.Stat, error)
	// List returns its names in the order of a listing, without what only Find sets.
	List(ctx context.Context) ([]Entry, error)
	// Find returns what a name stands for, or an error that wraps ErrNotFound or fs.ErrNotExist. It can find more than
	// List lists. If known is set, it looks at the file of the session alone, and takes all else to be as it was when
	// somebody looked last; then it can find less.
	Find(ctx context.Context, name string, known bool) (Entry, error)
}

// Entry is a name in a Directory.
type Entry struct {
	Name string
	// Sub is the subdirectory; nil for a link to a session.
	Sub Directory
	// Session is where a link leads: the path of the session's directory from sessions/ on, which begins with ../ if the
	// session is archived. Set by Find.
	Session string
	// Stat is that of the file whose owner and times a link has, or of the subdirectory. Set by Find.
	Stat storage.Stat
}

// Follow resolves a path below d to one below sessions/: through directories to a link, with what comes after that.
// The error is that of Find, or ErrLeadsNowhere.
func Follow(ctx context.Context, d Directory, parts []string) ([]string, error) {
	for i, name := range parts {
		e, err := d.Find(ctx, name, false)
		if err != nil {
			return nil, err
		}
		if e.Sub == nil {
			return append(strings.Split(e.Session, "/"), parts[i+1:]...), nil
		}
		d = e.Sub
	}
	return nil, ErrLeadsNowhere
}

// RelativeTarget returns the target of a link in the directory from that leads to another one below the same
// root.
func RelativeTarget(from, to string) string {
	here, there := strings.Split(from, "/"), strings.Split(to, "/")
	for len(here) > 0 && len(there) > 1 && here[0] == there[0] {
		here, there = here[1:], there[1:]
	}
	return strings.Repeat("../", len(here)) + strings.Join(there, "/")
}

package layout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/clients"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/names"
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
	// Session is where a link leads: the path of the session's directory from the mount's root. Set by Find.
	Session string
	// Stat is that of the file whose owner and times a link has, or of the subdirectory. Set by Find.
	Stat storage.Stat
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

// ByID is by-id/: a link for each session, named by its id. Every key that --resume takes is found
// (docs/design.md section 5).
type ByID struct {
	Listing *listing.Listing
	Archive *listing.Listing // nil for none: finds what nothing in Listing matches
}

var _ = (Directory)(ByID{})

// Stat has the time at which a session came or went last.
func (d ByID) Stat(ctx context.Context) (storage.Stat, error) { return d.Listing.Stat(ctx) }

// List returns the ids in the order of names; of sessions with the same id there is one.
func (d ByID) List(ctx context.Context) ([]Entry, error) {
	sessions, err := d.Listing.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(sessions.All()))
	seen := make(map[string]bool, len(sessions.All()))
	for _, info := range sessions.All() {
		if !seen[info.ID] {
			seen[info.ID] = true
			entries = append(entries, Entry{Name: names.FileName(info.ID)})
		}
	}
	sortByName(entries)
	return entries, nil
}

// Find resolves a key as --resume does.
func (d ByID) Find(ctx context.Context, name string, known bool) (Entry, error) {
	info, err := d.Listing.Resume(ctx, name, known)
	if errors.Is(err, sessioncore.ErrNotFound) && !known {
		if d.Archive != nil {
			info, err = d.Archive.Resume(ctx, name, false)
		}
		if errors.Is(err, sessioncore.ErrNotFound) {
			err = errNoKey
		}
	}
	if err != nil {
		return Entry{}, err
	}
	return linkTo(name, info), nil
}

// errNoKey says what a key must be.
var errNoKey = fmt.Errorf("%w: no session's id or file name begins with it", fs.ErrNotExist)

// linkTo is a link to a session, with the owner and the times of its file.
func linkTo(name string, info *listing.Info) Entry {
	return Entry{Name: name, Session: info.Path(), Stat: info.Stat}
}

func sortByName(entries []Entry) {
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
}

// Nested is by-cwd/ or by-date/ and all directories below it. In each there is a link to every session of just that directory,
// and latest.
type Nested struct {
	Listing *listing.Listing
	Tree    listing.Tree
	Dir     string // its path below by-cwd/ or by-date/; "/" for that itself
}

var _ = (Directory)(Nested{})

// Stat has the time at which a session came or went last.
func (d Nested) Stat(ctx context.Context) (storage.Stat, error) {
	return d.Listing.TreeStat(ctx, d.Tree, d.Dir)
}

// List returns the subdirectories, the links to sessions and latest in the order of names.
func (d Nested) List(ctx context.Context) ([]Entry, error) {
	found, err := d.Listing.TreeList(ctx, d.Tree, d.Dir)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, len(found))
	for i, e := range found {
		entries[i] = Entry{Name: e.Name, Sub: d.sub(e)}
	}
	sortByName(entries)
	return entries, nil
}

// Find finds a subdirectory, a session's link or latest.
func (d Nested) Find(ctx context.Context, name string, known bool) (Entry, error) {
	e, err := d.Listing.TreeFind(ctx, d.Tree, d.Dir, name, known)
	switch {
	case err != nil:
		return Entry{}, err
	case e.Dir == "":
		return linkTo(name, e.Session), nil
	}
	return Entry{Name: name, Sub: d.sub(e), Stat: e.Stat}, nil
}

func (d Nested) sub(e listing.TreeEntry) Directory {
	if e.Dir == "" {
		return nil
	}
	return Nested{d.Listing, d.Tree, e.Dir}
}

// recentCount is how many sessions recent/ holds (docs/design.md section 5).
const recentCount = 50

// Recent is recent/: links to the sessions that were modified last, named by their rank and their display name. A fork names
// the rank of its parent, if that has one.
type Recent struct{ Listing *listing.Listing }

var _ = (Directory)(Recent{})

// Stat has the time at which a session came or went last.
func (d Recent) Stat(ctx context.Context) (storage.Stat, error) { return d.Listing.Stat(ctx) }

// List returns the sessions by rank, all that Find sets included.
func (d Recent) List(ctx context.Context) ([]Entry, error) {
	sessions, err := d.Listing.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	var entries []Entry
	infos := d.infos(sessions)
	for i := range infos {
		entries = append(entries, linkTo(recentName(infos, i), infos[i]))
	}
	return entries, nil
}

// Find finds a link by its whole name.
func (d Recent) Find(ctx context.Context, name string, known bool) (_ Entry, err error) {
	sessions := d.Listing.Known()
	if !known {
		if sessions, err = d.Listing.Sessions(ctx); err != nil {
			return Entry{}, err
		}
	}
	infos := d.infos(sessions)
	rank, _, _ := strings.Cut(name, "-")
	if i, err := strconv.Atoi(rank); err == nil && 1 <= i && i <= len(infos) && recentName(infos, i-1) == name {
		if info := infos[i-1]; !known || d.Listing.IsCurrent(info) {
			return linkTo(name, info), nil
		}
	}
	return Entry{}, fmt.Errorf("%w: not among the recent ones", sessioncore.ErrNotFound)
}

// infos returns the sessions by rank.
func (d Recent) infos(sessions *listing.Sessions) []*listing.Info {
	return sessions.Newest(recentCount)
}

// recentName returns the name of the link to infos[i].
func recentName(infos []*listing.Info, i int) string {
	name := fmt.Sprintf("%02d-%s", i+1, infos[i].DisplayName())
	if parent := slices.IndexFunc(infos, infos[i].ForkOf); parent >= 0 {
		name += fmt.Sprintf(" (fork of %02d)", parent+1)
	} else if infos[i].Parent != "" {
		name += " (fork)"
	}
	return names.FileName(name)
}

// Continue is continue/: for each terminal a link to the session that its breadcrumb names. A breadcrumb that names
// no session of this store has no link.
type Continue struct {
	Listing *listing.Listing
	Crumbs  storage.Files // terminal-sessions/
}

var _ = (Directory)(Continue{})

// Stat mirrors the directory of breadcrumbs.
func (d Continue) Stat(_ context.Context) (storage.Stat, error) { return d.Crumbs.Stat("") }

// List returns the terminals in the order of the storage.
func (d Continue) List(ctx context.Context) ([]Entry, error) {
	crumbs, err := storage.List(d.Crumbs, "")
	if err != nil {
		return nil, err
	}
	var entries []Entry
	for _, crumb := range crumbs {
		if crumb.Kind != storage.KindFile {
			continue
		}
		if e, err := d.Find(ctx, crumb.Name, false); err == nil {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// Find follows the breadcrumb of a terminal. The link has its owner and times.
func (d Continue) Find(ctx context.Context, terminal string, _ bool) (Entry, error) {
	if terminal[0] == '.' {
		return Entry{}, fmt.Errorf("%w: no terminal is called %q", sessioncore.ErrNotFound, terminal)
	}
	st, err := d.Crumbs.Stat(terminal)
	if err != nil {
		return Entry{}, err
	}
	file, err := clients.ReadBreadcrumb(d.Crumbs, terminal)
	if err != nil {
		return Entry{}, err
	}
	session, err := d.Listing.Locate(ctx, file)
	if err != nil {
		return Entry{}, err
	}
	return Entry{Name: terminal, Session: d.Listing.Path(session), Stat: st}, nil
}

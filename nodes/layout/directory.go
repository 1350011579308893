package layout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/clients"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage"
)

// LinkDirectory is a directory of the mount with links to sessions, or with directories like itself.
// Its content is computed at each call.
type LinkDirectory interface {
	// Stat returns the directory's owner and times, which change when a session is added or removed.
	Stat(ctx context.Context) (storage.Stat, error)
	// List returns the names in the order of a listing, without the fields that Find sets.
	List(ctx context.Context) ([]LinkEntry, error)
	// Find returns the entry of a name, or an error that wraps ErrNotFound or fs.ErrNotExist. It
	// can find more than List lists. With known it reads only the session's own file and takes the
	// rest from the last listing, so that it can find less.
	Find(ctx context.Context, name string, known bool) (LinkEntry, error)
}

// LinkEntry is a name in a LinkDirectory.
type LinkEntry struct {
	Name string
	// Sub is the subdirectory; nil for a link to a session.
	Sub LinkDirectory
	// Session is a link's target: the path of the session's directory from the root. Set by Find.
	Session string
	// Stat is the state of the subdirectory, or of the file behind a link. Set by Find.
	Stat storage.Stat
}

// RelativeTarget returns the target of a link in the directory from to another path of the root.
func RelativeTarget(from, to string) string {
	here := strings.Split(from, "/")
	there := strings.Split(to, "/")
	// The common beginning is left out, but not the last name: a link to the directory itself would be empty.
	for len(here) > 0 && len(there) > 1 && here[0] == there[0] {
		here = here[1:]
		there = there[1:]
	}
	return strings.Repeat("../", len(here)) + strings.Join(there, "/")
}

// ByID is by-id/: a link for each session, named by its id. It finds every key of --resume
// (docs/design.md section 5).
type ByID struct {
	Listing *listing.Listing
	Archive *listing.Listing // is searched if Listing has no match; nil for none
}

func (d ByID) Stat(ctx context.Context) (storage.Stat, error) { return d.Listing.Stat(ctx) }

// List returns the ids in the order of names, each once.
func (d ByID) List(ctx context.Context) ([]LinkEntry, error) {
	sessions, err := d.Listing.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	infos := sessions.All()
	entries := make([]LinkEntry, 0, len(infos))
	isListed := make(map[string]bool, len(infos))
	for _, info := range infos {
		if !isListed[info.ID] {
			isListed[info.ID] = true
			entries = append(entries, LinkEntry{Name: names.FileName(info.ID)})
		}
	}
	sortByName(entries)
	return entries, nil
}

// Find resolves a key as --resume does: first among the sessions, then in the archive.
func (d ByID) Find(ctx context.Context, name string, known bool) (LinkEntry, error) {
	info, err := d.Listing.Resume(ctx, name, known)
	isMissing := errors.Is(err, sessioncore.ErrNotFound)
	if isMissing && !known && d.Archive != nil {
		info, err = d.Archive.Resume(ctx, name, false)
		isMissing = errors.Is(err, sessioncore.ErrNotFound)
	}
	if isMissing && !known {
		return LinkEntry{}, errNoKey
	}
	if err != nil {
		return LinkEntry{}, err
	}
	return linkTo(name, info), nil
}

// errNoKey is the error for a name that is no key of a session.
var errNoKey = fmt.Errorf("%w: no session's id or file name begins with it", fs.ErrNotExist)

// linkTo returns a link to a session, with the owner and the times of its file.
func linkTo(name string, info *listing.Info) LinkEntry {
	return LinkEntry{Name: name, Session: info.Path(), Stat: info.Stat}
}

// sortByName puts entries in the order of names.
func sortByName(entries []LinkEntry) {
	slices.SortFunc(entries, func(a, b LinkEntry) int {
		return strings.Compare(a.Name, b.Name)
	})
}

// Nested is by-cwd/ or by-date/, or a directory below it. It has a link to each session of just
// that directory, and latest.
type Nested struct {
	Listing *listing.Listing
	Tree    listing.KeyTable
	Dir     string // the path below by-cwd/ or by-date/; "/" for that itself
}

func (d Nested) Stat(ctx context.Context) (storage.Stat, error) {
	return d.Listing.TreeStat(ctx, d.Tree, d.Dir)
}

// List returns the subdirectories, the links to sessions and latest in the order of names.
func (d Nested) List(ctx context.Context) ([]LinkEntry, error) {
	found, err := d.Listing.TreeList(ctx, d.Tree, d.Dir)
	if err != nil {
		return nil, err
	}
	entries := make([]LinkEntry, len(found))
	for i, e := range found {
		entries[i] = LinkEntry{Name: e.Name, Sub: d.sub(e)}
	}
	sortByName(entries)
	return entries, nil
}

// Find finds a subdirectory, a session's link or latest.
func (d Nested) Find(ctx context.Context, name string, known bool) (LinkEntry, error) {
	e, err := d.Listing.TreeFind(ctx, d.Tree, d.Dir, name, known)
	if err != nil {
		return LinkEntry{}, err
	}
	isLink := e.Dir == ""
	if isLink {
		return linkTo(name, e.Session), nil
	}
	return LinkEntry{Name: name, Sub: d.sub(e), Stat: e.Stat}, nil
}

// sub returns the subdirectory of an entry, nil for a link.
func (d Nested) sub(e listing.TreeEntry) LinkDirectory {
	if e.Dir == "" {
		return nil
	}
	return Nested{Listing: d.Listing, Tree: d.Tree, Dir: e.Dir}
}

// recentCount is the number of sessions in recent/ (docs/design.md section 5).
const recentCount = 50

// Recent is recent/: links to the last modified sessions, named by rank and display name. The name
// of a fork contains the rank of its parent, if that has one.
type Recent struct{ Listing *listing.Listing }

func (d Recent) Stat(ctx context.Context) (storage.Stat, error) { return d.Listing.Stat(ctx) }

// List returns the sessions by rank, with the fields that Find sets.
func (d Recent) List(ctx context.Context) ([]LinkEntry, error) {
	infos, err := d.newest(ctx)
	if err != nil {
		return nil, err
	}
	var entries []LinkEntry
	for i := range infos {
		entries = append(entries, linkTo(recentName(infos, i), infos[i]))
	}
	return entries, nil
}

// newest returns the last modified sessions, the newest first. Sessions of subagents have no rank.
func (d Recent) newest(ctx context.Context) (infos []*listing.Info, err error) {
	for info, err := range d.Listing.NewestFirst(ctx) {
		if err != nil {
			return nil, err
		}
		if info.IsSubagent() {
			continue
		}
		infos = append(infos, info)
		if len(infos) == recentCount {
			break
		}
	}
	return infos, nil
}

// Find finds a link by its full name.
func (d Recent) Find(ctx context.Context, name string, known bool) (_ LinkEntry, err error) {
	var infos []*listing.Info
	if known {
		infos = d.Listing.Known().Newest(recentCount)
	} else {
		infos, err = d.newest(ctx)
		if err != nil {
			return LinkEntry{}, err
		}
	}
	info := findRecent(infos, name)
	if info == nil {
		return LinkEntry{}, errNotRecent
	}
	if known && !d.Listing.IsCurrent(info) {
		return LinkEntry{}, errNotRecent
	}
	return linkTo(name, info), nil
}

// errNotRecent means that a name is in no list of recent sessions.
var errNotRecent = fmt.Errorf("%w: not among the recent ones", sessioncore.ErrNotFound)

// findRecent returns the session of a link's name, nil for none.
func findRecent(infos []*listing.Info, name string) *listing.Info {
	rank, _, _ := strings.Cut(name, "-")
	n, err := strconv.Atoi(rank)
	if err != nil || n < 1 || n > len(infos) {
		return nil
	}
	if recentName(infos, n-1) != name {
		return nil
	}
	return infos[n-1]
}

// recentName returns the name of the link to infos[i]; infos are all recent sessions, by rank.
func recentName(infos []*listing.Info, i int) string {
	info := infos[i]
	name := fmt.Sprintf("%02d-%s", i+1, info.DisplayName())
	parent := slices.IndexFunc(infos, info.ForkOf)
	switch {
	case parent >= 0:
		name += fmt.Sprintf(" (fork of %02d)", parent+1)
	case info.Parent != "": // it has no rank
		name += " (fork)"
	}
	return names.FileName(name)
}

// Continue is continue/: for each terminal a link to the session of its breadcrumb, if it is here.
type Continue struct {
	Listing *listing.Listing
	Crumbs  storage.Files // terminal-sessions/
}

// Stat mirrors the directory of breadcrumbs.
func (d Continue) Stat(_ context.Context) (storage.Stat, error) { return d.Crumbs.Stat("") }

// List returns the terminals in the order of the storage, without those that Find does not find.
func (d Continue) List(ctx context.Context) ([]LinkEntry, error) {
	crumbs, err := storage.List(d.Crumbs, "")
	if err != nil {
		return nil, err
	}
	var entries []LinkEntry
	for _, crumb := range crumbs {
		if crumb.Kind != storage.KindFile {
			continue
		}
		e, err := d.Find(ctx, crumb.Name, false)
		if err == nil {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// Find follows the breadcrumb of a terminal. The link has the breadcrumb's owner and times. It reads the
// breadcrumb, with or without known.
func (d Continue) Find(ctx context.Context, terminal string, _ bool) (LinkEntry, error) {
	if terminal[0] == '.' { // temporary files lie beside the breadcrumbs
		return LinkEntry{}, fmt.Errorf("%w: no terminal is called %q", sessioncore.ErrNotFound, terminal)
	}
	st, err := d.Crumbs.Stat(terminal)
	if err != nil {
		return LinkEntry{}, err
	}
	file, err := clients.ReadBreadcrumb(d.Crumbs, terminal)
	if err != nil {
		return LinkEntry{}, err
	}
	session, err := d.Listing.Locate(ctx, file)
	if err != nil {
		return LinkEntry{}, err
	}
	return LinkEntry{Name: terminal, Session: d.Listing.Path(session), Stat: st}, nil
}

// Running is running/: a link to each session that an agent has open, by its name (docs/design.md
// section 5). It reads all breadcrumbs and the list of all locks once, so that its cost does not
// depend on the number of sessions while no agent runs.
type Running struct {
	Listing *listing.Listing
	Clients *clients.Clients
	Leases  *clients.Leases

	last atomic.Pointer[[]LinkEntry] // the last listing
}

func (d *Running) Stat(ctx context.Context) (storage.Stat, error) { return d.Listing.Stat(ctx) }

// List returns the sessions in the order of names, with the fields that Find sets. Sessions that
// share a name have their id appended, except the oldest.
func (d *Running) List(ctx context.Context) ([]LinkEntry, error) {
	infos, err := d.openSessions(ctx)
	if err != nil {
		return nil, err
	}
	// The names of files begin with a time, so the oldest comes first and keeps its plain name.
	slices.SortFunc(infos, func(a, b *listing.Info) int {
		return strings.Compare(path.Base(a.Name()), path.Base(b.Name()))
	})
	var entries []LinkEntry
	isUsed := map[string]bool{}
	for _, info := range infos {
		name := info.DisplayName()
		if isUsed[name] {
			name += " " + info.ID
		}
		isUsed[name] = true
		entries = append(entries, linkTo(names.FileName(name), info))
	}
	sortByName(entries)
	d.last.Store(&entries)
	return entries, nil
}

// Find finds a link by its full name, with known in the last listing.
func (d *Running) Find(ctx context.Context, name string, known bool) (LinkEntry, error) {
	var entries []LinkEntry
	last := d.last.Load()
	if known && last != nil {
		entries = *last
	} else {
		current, err := d.List(ctx)
		if err != nil {
			return LinkEntry{}, err
		}
		entries = current
	}
	i := slices.IndexFunc(entries, func(e LinkEntry) bool {
		return e.Name == name
	})
	if i < 0 {
		return LinkEntry{}, fmt.Errorf("%w: no agent has such a session open", sessioncore.ErrNotFound)
	}
	return entries[i], nil
}

// openSessions returns the sessions that an agent has open: a client names their file, or the file of a
// subagent's session, or holds their lease.
func (d *Running) openSessions(ctx context.Context) (open []*listing.Info, err error) {
	var named []string // files of sessions, or of their subagents' sessions
	for _, file := range d.Clients.Named() {
		s, err := d.Listing.Locate(ctx, file)
		if err == nil { // otherwise the file is in another store
			named = append(named, s.Name())
		}
	}
	held := d.Leases.Held()
	if len(named) == 0 && held == nil { // no agent runs, so no session need be read
		return nil, nil
	}
	sessions, err := d.Listing.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	for _, info := range sessions.All() {
		isNamed := slices.ContainsFunc(named, func(name string) bool {
			return name == info.Name() || strings.HasPrefix(name, info.DirName()+"/")
		})
		isHeld := !isNamed && held != nil && held(info.Name(), names.LeaseName(info.ID))
		if isNamed || isHeld {
			open = append(open, info)
		}
	}
	return open, nil
}
